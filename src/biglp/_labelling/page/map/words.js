// The map in words: its legend, a sentence that says what it shows, and the row under the pointer.

import { getJSON } from "../api.js";
import { classColour, doubtColour, unknownColour } from "../colours.js";
import { small } from "../content.js";
import { byId, count, el, number, percent, rowName } from "../dom.js";
import { classesByKey, state } from "../state.js";
import { UNKNOWN, tally } from "./data.js";

const WAIT_MS = 90;
let timer = null;
let hovered = -1;

/** Names and colours under the map. */
export function drawLegend(byDoubt, pairs) {
  const rgb = (doubt) => `rgb(${doubtColour(doubt).join(" ")})`;
  if (byDoubt) {
    const ramp = el("span", { class: "ramp" });
    ramp.style.background = `linear-gradient(90deg, ${[0, 16, 64, 144, 255].map(rgb).join(", ")})`;
    byId("legend").replaceChildren(el("span", {}, "sure", ramp, "in doubt"));
    return;
  }
  const item = (name, colour) => el("span", {}, el("span", { class: "dot", colour }), name);
  byId("legend").replaceChildren(
    ...classesByKey().map(({ name, index }) => item(name, classColour(index))),
    ...(tally(pairs)[UNKNOWN] > 0 ? [item("not known yet", unknownColour())] : []));
}

/** [class, number] of some points, or of all, the largest first. */
export function largest(pairs, among) {
  const counts = tally(pairs, among);
  return state.classes.map(({ name }, i) => [name, counts[i]]).filter(([, n]) => n > 0)
    .sort((a, b) => b[1] - a[1]);
}

/** The first three of them in words: "4 (1,201), 9 (88)". */
const inWords = (found) => found.slice(0, 3).map(([name, n]) => `${name} (${number(n)})`).join(", ");

/** One sentence for those who do not see the map. */
export function describe(scene, pairs) {
  const n = scene.points.length / 2;
  if (n === 0) {
    byId("map-text").textContent = "The map is being drawn up.";
    return;
  }
  const found = inWords(largest(pairs));
  const part = n < state.rows ? `${number(n)} of ${count(state.rows, "row")}` : count(n, "row");
  const rest = found ? `; most are ${found}` : "";
  byId("map-text").textContent = `${part}, near ones alike${rest}. `
    + `${count(scene.marks.points.length, "labelled row")} marked with a ring.`;
}

/** What the keyboard's circle holds, for a screen reader. */
export function describeCircle(inside, pairs) {
  if (inside.length === 0) return "No rows in the circle.";
  const found = inWords(largest(pairs, inside));
  return `${count(inside.length, "row")} in the circle${found ? `: ${found}` : ""}.`;
}

function place(box, [px, py]) {
  const panel = byId("map-panel").getBoundingClientRect();
  const map = byId("map").getBoundingClientRect();
  const left = map.left - panel.left + px + 16;
  const over = left + box.offsetWidth > panel.width - 8;
  box.style.left = `${Math.max(8, over ? left - box.offsetWidth - 32 : left)}px`;
  box.style.top = `${map.top - panel.top + py + 12}px`;
}

/** Show the row of a point near the pointer; -1 hides it. */
export function showHover(point, row, at) {
  const box = byId("hover");
  if (point === hovered) {
    if (point >= 0) place(box, at);
    return;
  }
  hovered = point;
  clearTimeout(timer);
  box.hidden = true;
  if (point < 0) return;
  timer = setTimeout(async () => {
    const card = await getJSON(`/api/row/${row}`).catch(() => null);
    if (!card || hovered !== point) return;
    const guess = card.guess ? `${card.guess.label}, ${percent(card.guess.probability)}` : "no guess";
    box.replaceChildren(small(card), el("strong", {}, rowName(card)),
      el("span", {}, card.label === null ? guess : `labelled ${card.label}`));
    box.hidden = false;
    place(box, at);
  }, WAIT_MS);
}
