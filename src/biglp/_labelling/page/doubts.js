// Given labels that the model would not have given, with a button to correct each.

import { getJSON, newAnswerId } from "./api.js";
import { byId, el, number, percent } from "./dom.js";
import { emit, on } from "./hub.js";
import { send } from "./outbox.js";
import { look } from "./session.js";
import { noticeFailure, state } from "./state.js";

let shown = "";

function correct({ row, suggested }) {
  send("answer", newAnswerId(), [row], { row, label: suggested });
  byId("doubts-title").focus({ preventScroll: true });
}

function line(each) {
  const name = `row ${number(each.row)}`;
  return el("li", {},
    state.kind === "image" ? el("img", { src: `/api/image/${each.row}`, alt: "", class: state.image ? "pixels" : null }) : null,
    el("span", { class: "say" }, `Row ${number(each.row)} is labelled `, el("strong", {}, each.label),
      "; the model thinks ", el("strong", {}, each.suggested),
      `. Wrong with ${percent(each.probability)} probability.`),
    el("span", { class: "pair" },
      el("button", { type: "button", class: "quiet", "aria-label": `Look at ${name}`, onclick: () => {
        look(each.row).then(() => byId("work-title").focus());
      } }, "Look"),
      el("button", { type: "button", class: "quiet", "aria-label": `Change ${name} to ${each.suggested}`,
        onclick: () => correct(each) }, `Change to ${each.suggested}`)));
}

async function draw() {
  let found;
  try {
    found = (await getJSON("/api/doubts")).rows;
  } catch (error) {
    if (!noticeFailure(error)) emit("problem", error.message);
    return;
  }
  const key = JSON.stringify([found, state.labelled === 0]);
  if (key === shown) return;
  shown = key;
  const had = byId("doubt-rows").contains(document.activeElement);
  byId("doubt-rows").replaceChildren(found.length === 0
    ? el("p", { class: "small" }, state.labelled === 0
      ? "Labels that the model would not have given will be listed here."
      : "None: the model agrees with every label you gave.")
    : el("ul", { class: "doubt-list", tabindex: 0, role: "list", "aria-labelledby": "doubts-title" }, ...found.map(line)));
  if (had) byId("doubts-title").focus({ preventScroll: true });
}

export function startDoubts() {
  on("state", ({ before }) => {
    const fitted = !before || state.model.labels !== before.model.labels
      || (before.model.state !== state.model.state && state.model.state === "ready");
    if (fitted || state.labelled !== before.labelled || state.server !== before.server) draw();
  });
  on("saved", draw);
}
