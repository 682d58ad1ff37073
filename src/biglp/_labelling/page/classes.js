// The buttons of the classes with their keys, and the field that takes any other name.

import { classColour, dark } from "./colours.js";
import { byId, el, number } from "./dom.js";
import { on } from "./hub.js";
import { answer, current, skip, undo } from "./session.js";
import { classesByKey, state } from "./state.js";
import { afterPointer } from "./work.js";

const buttons = new Map();

function makeButton(name) {
  const parts = {
    key: el("kbd", {}), dot: el("span", { class: "dot" }), name: el("span", { class: "name" }, name),
    count: el("span", { class: "count" }),
  };
  const button = el("button", { type: "button", onclick: afterPointer(() => answer(name)), title: name },
    parts.key, parts.dot, parts.name, parts.count);
  return { button, parts };
}

/** Buttons stay the same elements, so that one with the focus keeps it. */
function drawButtons() {
  const names = new Set(state.classes.map(({ name }) => name));
  for (const [name, { button }] of buttons) {
    if (names.has(name)) continue;
    button.remove();
    buttons.delete(name);
  }
  classesByKey().forEach(({ name, key, labelled, index }, i) => {
    if (!buttons.has(name)) buttons.set(name, makeButton(name));
    const { button, parts } = buttons.get(name);
    parts.key.textContent = key ?? "";
    parts.key.hidden = !key;
    parts.dot.style.setProperty("--colour", classColour(index));
    parts.count.textContent = number(labelled);
    parts.count.setAttribute("aria-label", `${number(labelled)} labelled`);
    if (key) button.setAttribute("aria-keyshortcuts", key);
    const place = byId("classes").children[i] ?? null;
    if (place !== button) byId("classes").insertBefore(button, place);
  });
  byId("other-label").textContent = state.classes.length > 0 ? "Another class" : "What is it?";
  byId("class-names").replaceChildren(...state.classes.map(({ name }) => el("option", { value: name })));
}

function mark() {
  const { card } = current;
  for (const [name, { button }] of buttons) {
    button.classList.toggle("guessed", card?.guess?.label === name);
    button.classList.toggle("chosen", card?.label === name);
    button.disabled = current.rows.length === 0;
  }
  byId("skip").disabled = current.mode !== "next";
}

/** The known class that a typed beginning is completed to: the only one that begins so. */
function completed(typed) {
  const begins = (name) => name.toLowerCase().startsWith(typed.toLowerCase());
  const found = typed ? state.classes.map(({ name }) => name).filter(begins) : [];
  return found.length === 1 && found[0] !== typed ? found[0] : null;
}

/** Leave the row for later, and a name that was begun for it. */
export function skipRow() {
  byId("other-name").value = "";
  skip();
}

/** Put the cursor where a new class is typed. */
export function typeClass() {
  byId("other-name").focus();
}

export function startClasses() {
  on("state", ({ before }) => {
    drawButtons();
    mark();
    byId("undo").disabled = !state.can_undo;
    if (!before && state.classes.length === 0) typeClass();
  });
  on("current", mark);
  on("outbox", (waiting) => { if (waiting > 0) byId("undo").disabled = false; });
  dark.addEventListener("change", drawButtons);
  byId("other").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = byId("other-name").value.trim();
    if (!name || current.rows.length === 0) return; // the name waits for the row
    byId("other-name").value = "";
    answer(name);
    byId("work-title").focus({ preventScroll: true });
  });
  byId("other-name").addEventListener("keydown", (event) => {
    const known = event.key === "Tab" && !event.shiftKey && completed(event.target.value.trim());
    if (known) {
      event.preventDefault();
      event.target.value = known;
    }
    if (event.key !== "Escape") return;
    byId("other-name").value = "";
    byId("work-title").focus({ preventScroll: true });
  });
  byId("undo").addEventListener("click", afterPointer(undo));
  byId("skip").addEventListener("click", afterPointer(skipRow));
}
