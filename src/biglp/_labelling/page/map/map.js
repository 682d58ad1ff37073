// The map of all rows: loads its points, keeps its colours up to date and lets rows be picked.

import { say } from "../announce.js";
import { dark } from "../colours.js";
import { byId, el, number } from "../dom.js";
import { emit, on } from "../hub.js";
import { current, look, select } from "../session.js";
import { noticeFailure, state } from "../state.js";
import { CanvasPainter } from "./canvas.js";
import { paintColours, readColours, readPoints } from "./data.js";
import { Grid } from "./grid.js";
import { listenTo } from "./input.js";
import { drawOverlay } from "./overlay.js";
import { View } from "./view.js";
import { WebGLPainter } from "./webgl.js";
import { describe, describeCircle, drawLegend, largest, showHover } from "./words.js";

const NEAR_PX = 12;
const SLOW_MS = 90;
const REST_MS = 200;
const COARSEST = 16;
const view = new View();
const scene = {
  points: new Float32Array(0), marks: { points: [], classes: [] }, selected: [],
  current: -1, hovered: -1, corners: [], brush: null,
};
let rows = new Float64Array(0);
let at = new Map();
let pairs = new Uint8Array(0);
let grid = new Grid(scene.points);
let painter = null;
let over = null;
let ratio = 1;
let byDoubt = false;
let drag = false;
let coarse = 1;
let resting = null;
let waiting = { paint: false, overlay: false, step: 1 };

/** WebGL where there is any, else a plain canvas; also when the graphics card gives up later. */
function makePainter() {
  for (const Painter of [WebGLPainter, CanvasPainter]) {
    const canvas = el("canvas", { "aria-hidden": "true" });
    try {
      painter = new Painter(canvas);
    } catch {
      continue;
    }
    byId("map").replaceChildren(canvas, over);
    byId("map").dataset.painter = Painter === WebGLPainter ? "webgl" : "canvas";
    canvas.addEventListener("webglcontextlost", () => {
      painter = null;
      const plain = el("canvas", { "aria-hidden": "true" });
      painter = new CanvasPainter(plain);
      byId("map").dataset.painter = "canvas";
      canvas.replaceWith(plain);
      fillPainter();
      resize();
    });
    return;
  }
}

/** Give the painter places and colours, once both are there. */
function fillPainter() {
  if (pairs.length !== scene.points.length) return;
  painter.setPoints(scene.points);
  painter.setColours(paintColours(pairs, byDoubt));
  draw();
}

/** Paint in the next frame; moving the pointer needs the overlay only. */
function draw(points = true, step = 1) {
  const idle = !waiting.paint && !waiting.overlay;
  waiting = { paint: waiting.paint || points, overlay: true, step };
  if (!idle) return;
  requestAnimationFrame((began) => {
    if (waiting.paint && scene.points.length > 0) {
      painter.paint(view, ratio, waiting.step);
      if (waiting.step > 1) settle();
      requestAnimationFrame((ended) => measure(ended - began));
    }
    drawOverlay(over, view, ratio, scene);
    waiting = { paint: false, overlay: false, step: 1 };
  });
}

/** Where painting is slow, fewer points are drawn while the map moves, and all when it rests. */
function measure(took) {
  if (took > SLOW_MS) coarse = Math.min(COARSEST, coarse * 2);
  else if (took < SLOW_MS / 3) coarse = Math.max(1, coarse / 2);
}

function settle() {
  clearTimeout(resting);
  resting = setTimeout(draw, REST_MS);
}

function resize() {
  view.width = byId("map").clientWidth;
  view.height = byId("map").clientHeight;
  ratio = Math.min(2, devicePixelRatio || 1);
  for (const canvas of [painter.canvas, over]) {
    canvas.width = Math.round(view.width * ratio);
    canvas.height = Math.round(view.height * ratio);
  }
  draw();
}

let loads = 0;
async function load() {
  loads += 1;
  const mine = loads;
  const found = await readPoints();
  if (mine !== loads) return; // a later one has been asked for
  ({ points: scene.points, rows, at } = found);
  grid = new Grid(scene.points);
  byId("map").setAttribute("aria-label", `Map of ${number(rows.length)} rows`);
  await recolour();
  point();
}

let colouring = false;
let stale = false;
async function recolour() {
  if (colouring) {
    stale = true;
    return;
  }
  colouring = true;
  try {
    do {
      stale = false;
      ({ pairs, marks: scene.marks } = await readColours());
      fillPainter();
      drawLegend(byDoubt, pairs);
      describe(scene, pairs);
    } while (stale);
  } finally {
    colouring = false;
  }
}

/** Point at what is shown now. */
function point() {
  scene.current = current.card ? at.get(current.card.row) ?? -1 : -1;
  if (current.mode !== "many") scene.selected = [];
  draw(false);
}

const failed = (error) => {
  if (!noticeFailure(error)) emit("problem", `The map could not be read. ${error.message}`);
};

function pick(found) {
  scene.corners = [];
  setLasso(false);
  if (found.length === 0) say("No rows there.");
  else {
    scene.selected = found;
    select(found.map((i) => rows[i]), largest(pairs, found));
    byId("work-title").focus({ preventScroll: true });
  }
  draw(false);
}

function nearest(px, py) {
  return grid.nearest(...view.toData(px, py), NEAR_PX / view.scaleX, NEAR_PX / view.scaleY);
}

function startBrush() {
  scene.brush ??= { x: view.x, y: view.y, radius: 40 };
  return scene.brush;
}

const circle = ({ x, y, radius }) => grid.inEllipse(x, y, radius / view.scaleX, radius / view.scaleY);

const act = {
  move(dx, dy) { view.pan(dx, dy); draw(true, coarse); },
  zoom(factor, px, py) { view.zoomAt(factor, px, py); draw(true, coarse); },
  zoomKey(factor) {
    const { x, y } = startBrush();
    act.zoom(factor, ...view.toScreen(x, y));
  },
  hover(px, py) {
    const found = nearest(px, py);
    if (found !== scene.hovered) draw(false);
    scene.hovered = found;
    showHover(found, rows[found], [px, py]);
  },
  leave() { scene.hovered = -1; showHover(-1); draw(false); },
  click(px, py) {
    const found = nearest(px, py);
    if (found >= 0) look(rows[found]);
  },
  drawing(corners) { scene.corners = corners; draw(false); },
  drawn(corners) { pick(grid.inPolygon(corners.map(([px, py]) => view.toData(px, py)))); },
  brush(dx, dy) {
    const brush = startBrush();
    brush.x = Math.min(1, Math.max(-1, brush.x + dx / view.zoom));
    brush.y = Math.min(1, Math.max(-1, brush.y - dy / view.zoom));
    const [px, py] = view.toScreen(brush.x, brush.y);
    view.pan(Math.min(0, view.width - px) + Math.max(0, -px), Math.min(0, view.height - py) + Math.max(0, -py));
    draw();
    say(describeCircle(circle(brush), pairs));
  },
  brushSize(factor) {
    const brush = startBrush();
    brush.radius = Math.min(view.width, Math.max(6, brush.radius * factor));
    draw(false);
    say(describeCircle(circle(brush), pairs));
  },
  brushTake() { pick(circle(startBrush())); },
  brushEnd() { scene.brush = null; draw(false); },
};

function setLasso(value) {
  drag = value;
  byId("lasso").setAttribute("aria-pressed", String(value));
  byId("map").classList.toggle("lassoing", value);
}

/** Turn the lasso on or off. */
export function toggleLasso() {
  setLasso(!drag);
  say(drag ? "Lasso on: draw around rows on the map." : "Lasso off.");
}

/** Colour by class or by doubt. */
export function toggleColour(wish) {
  byDoubt = typeof wish === "boolean" ? wish : !byDoubt;
  byId("by-class").setAttribute("aria-pressed", String(!byDoubt));
  byId("by-doubt").setAttribute("aria-pressed", String(byDoubt));
  fillPainter();
  drawLegend(byDoubt, pairs);
}

/** Go to the map by keyboard: the circle starts at the current row. */
export function focusMap() {
  byId("map").focus();
  const [x, y] = scene.current < 0 ? [view.x, view.y]
    : [scene.points[2 * scene.current], scene.points[2 * scene.current + 1]];
  scene.brush = { x, y, radius: 40 };
  act.brush(0, 0);
}

/** What the colours depend on; a version of the state may change for other reasons. */
const looks = ({ model, labelled, classes }) => JSON.stringify(
  [model.labels, model.state, labelled, classes.map(({ name, found }) => [name, found])]);

export function startMap() {
  over = el("canvas", { "aria-hidden": "true" });
  makePainter();
  new ResizeObserver(resize).observe(byId("map"));
  listenTo(byId("map"), () => drag, act);
  byId("lasso").addEventListener("click", toggleLasso);
  byId("by-class").addEventListener("click", () => toggleColour(false));
  byId("by-doubt").addEventListener("click", () => toggleColour(true));
  byId("zoom-in").addEventListener("click", () => act.zoom(1.5, view.width / 2, view.height / 2));
  byId("zoom-out").addEventListener("click", () => act.zoom(1 / 1.5, view.width / 2, view.height / 2));
  byId("zoom-all").addEventListener("click", () => { view.reset(); draw(); });
  dark.addEventListener("change", () => { if (state) toggleColour(byDoubt); });
  on("current", point);
  on("state", ({ before }) => {
    // The server places rows of its pool first and the others later.
    const grown = state.map_points !== before?.map_points || state.server !== before?.server;
    if (grown) load().catch(failed);
    else if (looks(state) !== looks(before)) recolour().catch(failed);
  });
}
