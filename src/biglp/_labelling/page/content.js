// What a row holds: an image, text, or a table of its values beside the means of the classes.

import { classColour } from "./colours.js";
import { el, rowName } from "./dom.js";
import { state } from "./state.js";

const LARGE = 320;

/** Pixels grow by a whole factor, so that every one stays a square. */
function enlarge(picture) {
  if (!state.image) return;
  const { height, width } = state.image;
  const factor = Math.max(1, Math.floor(LARGE / Math.max(height, width)));
  picture.width = width * factor;
  picture.height = height * factor;
  picture.className = "pixels";
}

function image(card) {
  const picture = card.picture ?? new Image();
  if (!card.picture) picture.src = card.content.src;
  picture.alt = `Image of row ${card.row}`;
  enlarge(picture);
  return picture;
}

function values(card) {
  const classes = state.classes.filter(({ name }) => card.values.some(({ means }) => name in means));
  const heads = classes.map(({ name }) => el("th", { scope: "col" },
    el("span", { class: "dot", colour: classColour(state.classes.findIndex((c) => c.name === name)) }),
    name));
  const rows = card.values.map((each) => el("tr", {},
    el("th", { scope: "row" }, each.name),
    el("td", {}, each.value),
    ...classes.map(({ name }) => el("td", {}, each.means[name] ?? ""))));
  const note = classes.length > 0 ? "value, then the mean of each class" : "value";
  return el("div", { class: "values", tabindex: 0, role: "region", "aria-label": "Values of the row" },
    el("table", {},
      el("caption", { class: "unseen" }, `Values of the row: ${note}`),
      el("thead", {}, el("tr", {},
        el("th", { scope: "col" }, "Column"), el("th", { scope: "col" }, "This row"), ...heads)),
      el("tbody", {}, ...rows)));
}

function shown(pairs) {
  return el("dl", { class: "shown" }, ...pairs.map(({ name, value }) => el("div", {},
    el("dt", {}, name), el("dd", {}, value))));
}

/** All of a row, large. */
export function large(card) {
  const found = [];
  if (card.content.kind === "image") found.push(image(card));
  if (card.content.kind === "text") {
    found.push(el("div", { class: "text", tabindex: 0, role: "region", "aria-label": "Text of the row" },
      card.content.text));
  }
  if (card.shown.length > 0) found.push(shown(card.shown));
  if (card.values.length > 0 && card.content.kind !== "image") found.push(values(card));
  return found;
}

/** A row in small: for neighbours, samples and the row under the pointer. */
export function small(row) {
  if (row.content.kind === "image") {
    return el("img", { src: row.content.src, alt: "", class: state.image ? "pixels" : null });
  }
  if (row.content.kind === "text") return el("span", { class: "text" }, row.content.text.slice(0, 200));
  return el("span", { class: "text" }, inShort(row));
}

/** The first values of a row in one line; where they are not known, its name. */
export function inShort(row) {
  const first = (row.values ?? []).slice(0, 4).map(({ name, value }) => `${name} ${value}`);
  return first.length > 0 ? first.join(", ") : rowName(row);
}
