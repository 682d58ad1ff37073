// Keys for the whole page. They rest while something is typed or a dialog is open, and can be
// switched off in the help, for screen readers and voice control that use single letters.

import { typeClass } from "./classes.js";
import { openClasses } from "./classdialog.js";
import { byId } from "./dom.js";
import { openFinish } from "./finish.js";
import { keysAreOn, openHelp } from "./help.js";
import { focusMap, toggleColour, toggleLasso } from "./map/map.js";
import { accept, answer, back, skip, undo } from "./session.js";
import { state } from "./state.js";

const ACTIONS = {
  u: undo,
  s: skip,
  n: typeClass,
  r: openClasses,
  m: focusMap,
  l: toggleLasso,
  c: toggleColour,
  d: () => byId("doubts-title").focus(),
  f: openFinish,
  Escape: back,
};

const types = (target) => target.matches("input, textarea, select");
const presses = (target) => target.matches("button, a, summary, [role=application]");

function pressed(event) {
  const { key, target } = event;
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.repeat) return;
  if (document.querySelector("dialog[open]") || types(target)) return;
  if (key === "?") {
    event.preventDefault();
    openHelp();
    return;
  }
  if (!state || !keysAreOn()) return;
  if (key === "Enter") {
    if (!presses(target)) accept();
    return;
  }
  const letter = key.length === 1 ? key.toLowerCase() : key;
  const known = state.classes.find((each) => each.key === letter);
  if (known) answer(known.name);
  else if (letter in ACTIONS) ACTIONS[letter]();
  else {
    // Any other letter or digit begins the name of a class: the field gets it as its first one.
    if (/^[\p{L}\p{N}]$/u.test(key)) typeClass();
    return;
  }
  // The letter must not also land in a field that the action has given the focus to.
  event.preventDefault();
}

export function startKeys() {
  document.addEventListener("keydown", pressed);
}
