// Rename classes, or add some before a row needs them.

import { Answered, postJSON } from "./api.js";
import { say } from "./announce.js";
import { classColour } from "./colours.js";
import { byId, el } from "./dom.js";
import { noticeFailure, refresh, state } from "./state.js";

async function change(content, done) {
  const problem = byId("class-problem");
  problem.textContent = "";
  try {
    await postJSON("/api/classes", content);
    await refresh();
    say(done);
    fill();
  } catch (error) {
    const gone = noticeFailure(error);
    problem.textContent = error instanceof Answered ? error.message
      : gone ? "The server is gone; try again when it is back." : String(error);
  }
}

function rename(event, before) {
  event.preventDefault();
  const to = event.target.elements.name.value.trim();
  if (!to || to === before) return;
  change({ rename: before, to }, `${before} is now ${to}`).then(() => {
    const fields = [...byId("class-dialog").querySelectorAll(".class-list input")];
    fields.find((each) => each.value === to)?.focus();
  });
}

function add(event) {
  event.preventDefault();
  const name = event.target.elements.name.value.trim();
  if (name) change({ add: name }, `Added ${name}`).then(() => byId("class-new")?.focus());
}

const field = (props) => el("input", { name: "name", maxlength: 200, spellcheck: "false", ...props });

function fill() {
  const dialog = byId("class-dialog");
  const rows = state.classes.map(({ name }, i) => el("li", {}, el("form", {
    class: "class-add", onsubmit: (event) => rename(event, name) },
  el("span", { class: "dot", colour: classColour(i) }),
  field({ value: name, "aria-label": `Name of class ${name}` }),
  el("button", { type: "submit", class: "quiet" }, "Rename"))));
  dialog.replaceChildren(
    el("h2", { id: "class-dialog-title" }, "Classes"),
    el("p", { class: "small" }, "A new name goes to all rows that have the old one. Enter saves."),
    el("ul", { class: "class-list", tabindex: -1 }, ...rows),
    el("form", { class: "class-add", onsubmit: add },
      el("span", {}), field({ id: "class-new", "aria-label": "Name of a new class", placeholder: "New class" }),
      el("button", { type: "submit", class: "quiet" }, "Add")),
    el("p", { class: "problem", id: "class-problem", role: "alert" }),
    el("div", { class: "dialog-tools" },
      el("button", { type: "button", onclick: () => dialog.close() }, "Close")));
}

/** Show the classes. */
export function openClasses() {
  fill();
  byId("class-dialog").showModal();
  byId("class-dialog").querySelector("input").focus();
}

export function startClassDialog() {
  byId("edit-classes").addEventListener("click", openClasses);
}
