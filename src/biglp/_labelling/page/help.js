// The help overlay, and the switch for single-letter keys.

import { byId, el } from "./dom.js";

const STORED = "biglp-keys";
const KEYS = [
  ["1 – 9", "give the row this class (the digit is on the button)"],
  ["letters, Enter", "type the name of a class, new or known; Tab completes a known one"],
  ["Enter", "the model's guess is right"],
  ["Ctrl Z", "undo the last answer"],
  ["Alt S", "skip this row"],
  ["Alt N", "type a name that begins with a digit or a question mark"],
  ["Alt R", "rename classes, or add some"],
  ["Alt M", "map: arrows move a circle, [ ] its size, + − zoom, Enter selects"],
  ["Alt L", "lasso: draw around rows to label them all"],
  ["Alt C", "colour the map by class or by doubt"],
  ["Alt D", "labels in doubt"],
  ["Alt F", "finish: label all rows and write files"],
  ["Esc", "back to the next row"],
];

/** On Apple's keyboards Alt writes other letters, and Ctrl is free. */
export const APPLE = /Mac|iP(ad|hone|od)/.test(navigator.platform);
const onThisKeyboard = (key) => (APPLE ? key.replace("Ctrl Z", "⌘ Z").replace("Alt", "Ctrl") : key);

/** Show the keys that this keyboard has for the commands. */
function nameKeys() {
  for (const hint of document.querySelectorAll("kbd")) hint.textContent = onThisKeyboard(hint.textContent);
  for (const button of document.querySelectorAll("[aria-keyshortcuts]")) {
    const keys = button.getAttribute("aria-keyshortcuts");
    button.setAttribute("aria-keyshortcuts", APPLE
      ? keys.replace("Control+Z", "Meta+Z").replace("Alt", "Control") : keys);
  }
}

let on = true;
try {
  on = localStorage.getItem(STORED) !== "off";
} catch {
  // No storage: keys are on.
}

export const keysAreOn = () => on;

function change(event) {
  on = event.target.checked;
  try {
    localStorage.setItem(STORED, on ? "on" : "off");
  } catch {
    // It holds until the page is closed.
  }
}

/** Show the help. */
export function openHelp() {
  const dialog = byId("help");
  const rows = KEYS.flatMap(([key, text]) => [
    el("dt", {}, el("kbd", {}, onThisKeyboard(key))), el("dd", {}, text)]);
  dialog.replaceChildren(
    el("h2", { id: "help-title" }, "How to label"),
    el("p", {}, "Say what the row is. The page picks rows from which the model learns most; "
      + "watch the map fall into place and the estimate rise. Every answer is written to the "
      + "labels file before the page says “Saved”."),
    el("dl", { class: "keys" }, ...rows),
    el("label", { class: "toggle" },
      el("input", { type: "checkbox", checked: on, onchange: change }),
      "Single keys are on (switch off for voice control or a screen reader)"),
    el("div", { class: "dialog-tools" },
      el("button", { type: "button", onclick: () => dialog.close(), autofocus: true }, "Close")));
  dialog.showModal();
}

export function startHelp() {
  nameKeys();
  byId("open-help").addEventListener("click", openHelp);
}
