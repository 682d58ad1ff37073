// The help overlay, and the switch for single-letter keys.

import { byId, el } from "./dom.js";

const STORED = "biglp-keys";
const KEYS = [
  ["1 – 9, letters", "give the row this class (the key is on the button)"],
  ["Enter", "the model's guess is right"],
  ["N", "type another class, new or known; a key without a class begins one too"],
  ["S", "skip this row"],
  ["U", "undo the last answer"],
  ["R", "rename classes, or add some"],
  ["M", "map: arrows move a circle, [ ] its size, + − zoom, Enter selects"],
  ["L", "lasso: draw around rows to label them all"],
  ["C", "colour the map by class or by doubt"],
  ["D", "labels in doubt"],
  ["F", "finish: label all rows and write files"],
  ["Esc", "back to the next row"],
];

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
    el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)]);
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
  byId("open-help").addEventListener("click", openHelp);
}
