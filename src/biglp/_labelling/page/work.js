// The panel of the row to label: heading, content, what the model thinks, neighbours; or, when
// many rows are selected, a sample of them.

import { getJSON } from "./api.js";
import { classColour, dark } from "./colours.js";
import { inShort, large, small } from "./content.js";
import { byId, count, el, number, percent, rowName } from "./dom.js";
import { on } from "./hub.js";
import { accept, back, current, look } from "./session.js";
import { isOpen, state } from "./state.js";

const SAMPLE = 12;

const colourOf = (name) => {
  const index = state.classes.findIndex((each) => each.name === name);
  return index < 0 ? null : classColour(index);
};
const dot = (name) => el("span", { class: "dot", colour: colourOf(name) });

const bar = (name, share, text) => el("li", { colour: colourOf(name) },
  el("span", { class: "name" }, name),
  el("span", { class: "number" }, text),
  el("span", { class: "track" }, el("span", { "width%": 100 * share })));

function noGuess() {
  if (state.model.problem) return state.model.problem;
  if (state.labelled === 0) return "No guess yet: it learns from your first labels.";
  const labelled = state.classes.filter((each) => each.labelled > 0).length;
  return labelled < 2 ? "No guess yet: it needs labelled rows of two classes."
    : "No guess yet: it is learning from your labels. It will guess the next rows.";
}

function thinking(card) {
  if (!card.guess) {
    return [el("h3", {}, "The model"), el("p", { class: "small" },
      noGuess())];
  }
  const bars = card.probabilities
    .map(({ label, probability }) => bar(label, probability, percent(probability)));
  return [
    el("h3", {}, "The model thinks"),
    el("p", { class: "guess" }, dot(card.guess.label), card.guess.label),
    el("p", { class: "sure" }, `${percent(card.guess.probability)} sure`),
    el("ul", { class: "bars", "aria-label": "Probability of each class" }, ...bars),
    el("button", { type: "button", class: "accept", onclick: afterPointer(accept) },
      "Right, next", el("kbd", {}, "Enter")),
  ];
}

/** After a click with the pointer, Enter must mean "accept" again and not this button. */
export function afterPointer(action) {
  return (event) => {
    action();
    if (event.detail > 0) byId("work-title").focus({ preventScroll: true });
  };
}

function neighbour(each) {
  const name = `Row ${number(each.row)}, labelled ${each.label}`;
  const content = small(each);
  if (each.content.kind === "table") {
    // Neighbours come without their values; these may come later.
    getJSON(`/api/row/${each.row}`).then((card) => { content.textContent = inShort(card); }, () => {});
  }
  return el("li", {}, el("button", { type: "button", class: "quiet", "aria-label": name,
    onclick: () => look(each.row) },
  content, el("span", { class: "label" }, dot(each.label), each.label)));
}

function showCard({ mode, card }) {
  byId("work-title").textContent = rowName(card);
  const given = card.label === null ? "" : `Labelled ${card.label}. `;
  byId("why").textContent = given + (mode === "look" ? "You picked this row." : card.why);
  byId("content").classList.toggle("plain", card.content.kind !== "image");
  byId("content").replaceChildren(...large(card));
  byId("think").replaceChildren(...thinking(card));
  byId("nearest").hidden = card.nearest.length === 0;
  byId("nearest").classList.toggle("images", card.content.kind === "image");
  byId("nearest-rows").replaceChildren(...card.nearest.map(neighbour));
}

function showNothing() {
  const all = state && isOpen();
  byId("work-title").textContent = all ? "No row is left to label" : "Waiting for the next row";
  byId("why").textContent = all
    ? "Every row of the pool is labelled or skipped. Finish writes the labels of all rows." : "";
  byId("content").replaceChildren();
  byId("think").replaceChildren();
  byId("nearest").hidden = true;
}

/** Places spread evenly over a list, the first and the last among them. */
function spread(list, most) {
  const n = Math.min(most, list.length);
  return Array.from({ length: n }, (_, i) => list[Math.floor((i * list.length) / n)]);
}

async function showMany(shown) {
  const { rows, tally } = shown;
  byId("work-title").textContent = `${count(rows.length, "row")} selected`;
  byId("why").textContent = "The next class you choose goes to all of them; Undo takes it back.";
  byId("nearest").hidden = true;
  byId("content").classList.add("plain");
  const sample = el("div", { class: state.kind === "image" ? "sample" : "sample wide" });
  byId("content").replaceChildren(el("h3", {}, "Some of them"), sample);
  byId("think").replaceChildren(el("h3", {}, "The model thinks"), el("ul", { class: "bars" },
    ...(tally.length > 0 ? [] : [el("li", { class: "small" }, "No guess yet.")]),
    ...tally.slice(0, 8).map(([name, n]) => bar(name, n / rows.length, number(n)))));
  const cards = await Promise.all(spread(rows, SAMPLE)
    .map((row) => getJSON(`/api/row/${row}`).catch(() => null)));
  if (current !== shown) return;
  const found = cards.filter(Boolean);
  sample.append(...found.map((card) => el("button", { type: "button", class: "quiet",
    "aria-label": `Look at row ${number(card.row)}`, onclick: () => look(card.row) },
  small(card), el("span", { class: "small" }, card.label ?? card.guess?.label ?? "no guess"))));
}

function draw(shown) {
  byId("back").hidden = shown.mode !== "look" && shown.mode !== "many";
  byId("intro").hidden = !(state && state.labelled === 0 && shown.mode === "next");
  byId("work").classList.toggle("many", shown.mode === "many");
  if (shown.mode === "many") showMany(shown);
  else if (shown.card) showCard(shown);
  else showNothing();
}

export function startWork() {
  on("current", draw);
  on("state", ({ before }) => {
    if (before && state.labelled > 0) byId("intro").hidden = true;
  });
  dark.addEventListener("change", () => { if (state) draw(current); });
  byId("back").addEventListener("click", afterPointer(back));
}
