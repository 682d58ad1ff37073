// Estimated accuracy with its interval over the number of labels, as inline SVG.

import { byId, el, number, percent } from "./dom.js";
import { on } from "./hub.js";
import { state } from "./state.js";

const WIDTH = 440;
const HEIGHT = 132;
const PAD = { left: 38, right: 12, top: 10, bottom: 22 };
const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** A round step that cuts a span in two to five. */
function niceStep(span) {
  const power = 10 ** Math.floor(Math.log10(span));
  return power * [0.2, 0.5, 1, 2].find((step) => span / (power * step) <= 5);
}

function drawing(history) {
  const most = history.at(-1).labels;
  const least = Math.min(history[0].labels, most - 1);
  const floor = Math.min(0.9, Math.floor(10 * Math.min(...history.map((h) => h.low))) / 10);
  const x = (n) => PAD.left + ((n - least) / (most - least)) * (WIDTH - PAD.left - PAD.right);
  const y = (a) => HEIGHT - PAD.bottom - ((a - floor) / (1 - floor)) * (HEIGHT - PAD.top - PAD.bottom);
  const at = (n, a) => `${x(n).toFixed(1)},${y(a).toFixed(1)}`;
  const lines = [0, 0.5, 1].map((share) => floor + share * (1 - floor)).flatMap((a) => [
    svg("line", { class: "grid-line", x1: PAD.left, x2: WIDTH - PAD.right, y1: y(a), y2: y(a) }),
    svg("text", { x: PAD.left - 6, y: y(a) + 4, "text-anchor": "end" }, `${Math.round(100 * a)} %`)]);
  const step = Math.max(1, niceStep(most - least));
  for (let n = Math.ceil(least / step) * step; n <= most; n += step) {
    lines.push(svg("text", { x: x(n), y: HEIGHT - 6, "text-anchor": "middle" }, number(n)));
  }
  const band = [...history.map((h) => at(h.labels, h.high)),
    ...history.toReversed().map((h) => at(h.labels, h.low))];
  const last = history.at(-1);
  return svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": `Estimated accuracy from ${percent(history[0].accuracy)} with ${history[0].labels} `
      + `labels to ${percent(last.accuracy)} with ${last.labels} labels` },
  ...lines,
  svg("polygon", { class: "band", points: band.join(" ") }),
  svg("polyline", { class: "line", points: history.map((h) => at(h.labels, h.accuracy)).join(" ") }),
  svg("circle", { class: "last", r: 4.5, cx: x(last.labels), cy: y(last.accuracy) }));
}

function draw() {
  const { estimate, history, next_gain: gain, labelled } = state;
  byId("gain").textContent = gain ?? "";
  if (!estimate) {
    byId("estimate").replaceChildren(el("p", { class: "small" }, labelled === 0
      ? "After some labels, the page estimates how many rows get the right class."
      : "Some more labels of each class are needed for an estimate."));
    byId("chart").replaceChildren();
    return;
  }
  byId("estimate").replaceChildren(
    el("p", { class: "big" }, percent(estimate.accuracy)),
    el("p", { class: "small" }, `of rows right, by estimate; likely between `
      + `${percent(estimate.low)} and ${percent(estimate.high)}`));
  // Taking labels back leaves points of more labels than there are now; the latest one counts.
  const byLabels = new Map(history.map((each) => [each.labels, each]));
  const points = [...byLabels.values()].sort((a, b) => a.labels - b.labels);
  byId("chart").replaceChildren(...(points.length > 1 ? [drawing(points)] : []));
}

export function startChart() {
  on("state", draw);
}
