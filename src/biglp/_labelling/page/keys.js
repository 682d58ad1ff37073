// Keys for the whole page. Letters always begin or go on with the name of a class, digits are the
// classes' own, commands need a second key. Keys rest while a dialog is open; single ones can be
// switched off in the help, for screen readers and voice control that use them.

import { skipRow, typeClass } from "./classes.js";
import { openClasses } from "./classdialog.js";
import { byId } from "./dom.js";
import { openFinish } from "./finish.js";
import { APPLE, keysAreOn, openHelp } from "./help.js";
import { focusMap, toggleColour, toggleLasso } from "./map/map.js";
import { accept, answer, back, undo } from "./session.js";
import { state } from "./state.js";

const COMMANDS = {
  s: skipRow,
  n: typeClass,
  r: openClasses,
  m: focusMap,
  l: toggleLasso,
  c: toggleColour,
  d: () => byId("doubts-title").focus(),
  f: openFinish,
};

const types = (target) => target.matches("input, textarea, select");
const presses = (target) => target.matches("button, a, summary, [role=application]");

/** What a key with Ctrl, Alt or Cmd means here, if anything. */
function command(event) {
  const { ctrlKey, altKey, metaKey, shiftKey, target } = event;
  const letter = event.key.toLowerCase();
  if (letter === "z" && (APPLE ? metaKey : ctrlKey) && !altKey && !shiftKey) {
    // In a field with text it takes back what was typed there.
    return types(target) && target.value ? null : undo;
  }
  // AltGr, which writes letters, is Ctrl and Alt at once; in Apple's fields Ctrl moves the cursor.
  const only = APPLE ? ctrlKey && !altKey && !types(target) : altKey && !ctrlKey;
  return only && !metaKey && !shiftKey && Object.hasOwn(COMMANDS, letter) ? COMMANDS[letter] : null;
}

function single(event) {
  const { key, target } = event;
  if (types(target)) return null;
  if (key === "?") return openHelp;
  if (!state || !keysAreOn()) return null;
  if (key === "Escape") return back;
  if (key === "Enter") return presses(target) ? null : accept;
  const known = state.classes.find((each) => each.key === key);
  if (known) return () => answer(known.name);
  // Anything else that can be seen begins the name of a class: the field gets it as its first letter.
  if (/^[^\s\p{C}]$/u.test(key) || key === "Dead" || key === "Process") typeClass();
  return null;
}

function pressed(event) {
  if (event.isComposing || event.repeat || document.querySelector("dialog[open]")) return;
  const writes = event.getModifierState("AltGraph");
  const modified = (event.ctrlKey || event.altKey || event.metaKey) && !writes;
  const action = modified ? state && command(event) : single(event);
  if (!action) return;
  event.preventDefault(); // the key must not also land in a field that the action gives the focus to
  action();
}

export function startKeys() {
  document.addEventListener("keydown", pressed);
}
