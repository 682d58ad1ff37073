// How many rows of each class were labelled and found.

import { classColour, dark } from "./colours.js";
import { byId, el, number } from "./dom.js";
import { on } from "./hub.js";
import { classesByKey, state } from "./state.js";

function line({ name, labelled, found, index }, most) {
  return el("tr", {},
    el("th", { scope: "row" }, el("span", { class: "dot", colour: classColour(index) }), name),
    el("td", {}, number(labelled)),
    el("td", {}, found === null ? "–" : number(found)),
    el("td", { class: "share" }, el("span", { colour: classColour(index), "width%": (100 * (found ?? 0)) / most })));
}

function draw() {
  if (!state) return;
  const classes = classesByKey();
  if (classes.length === 0) {
    byId("counts").replaceChildren(el("p", { class: "small" }, "No classes yet: you make them by naming rows."));
    return;
  }
  const most = Math.max(1, ...classes.map(({ found }) => found ?? 0));
  byId("counts").replaceChildren(
    el("table", { class: "counts" },
      el("caption", { class: "unseen" }, "Rows of each class"),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Class"), el("th", { scope: "col" }, "Labelled"),
        el("th", { scope: "col" }, "Found in all"), el("td", {}))),
      el("tbody", {}, ...classes.map((each) => line(each, most)))),
    el("p", { class: "small" }, `${number(state.labelled)} labelled, ${number(state.skipped)} skipped, `
      + `${number(state.rows)} rows in all`));
}

export function startCounts() {
  on("state", draw);
  dark.addEventListener("change", draw);
}
