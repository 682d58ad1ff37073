// What is drawn over the points: labelled rows, the current row, the selection, lasso and circle.

import { classColour, dark } from "../colours.js";

const ink = () => (dark.matches ? "#ffffff" : "#12151b");
const ground = () => (dark.matches ? "#14171c" : "#ffffff");
const MOST_MARKS = 5000;

function ring(context, [x, y], radius, width, colour) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.lineWidth = width;
  context.strokeStyle = colour;
  context.stroke();
}

function labelled(context, view, { points, marks }) {
  for (let k = 0; k < Math.min(MOST_MARKS, marks.points.length); k += 1) {
    const i = marks.points[k];
    const at = view.toScreen(points[2 * i], points[2 * i + 1]);
    context.beginPath();
    context.arc(...at, 4.2, 0, 2 * Math.PI);
    context.fillStyle = classColour(marks.classes[k]);
    context.fill();
    ring(context, at, 4.2, 1.6, ground());
    ring(context, at, 5.4, 1.1, ink());
  }
}

/** A target around the current row: a ring and four short lines, seen on any colour. */
function target(context, view, points, i) {
  const [x, y] = view.toScreen(points[2 * i], points[2 * i + 1]);
  for (const [width, colour] of [[5, ground()], [2.2, ink()]]) {
    ring(context, [x, y], 10, width, colour);
    context.beginPath();
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      context.moveTo(x + 10 * dx, y + 10 * dy);
      context.lineTo(x + 17 * dx, y + 17 * dy);
    }
    context.stroke();
  }
}

function lasso(context, corners) {
  context.beginPath();
  corners.forEach(([x, y]) => context.lineTo(x, y));
  context.closePath();
  context.fillStyle = dark.matches ? "rgb(143 177 255 / 18%)" : "rgb(43 88 207 / 12%)";
  context.fill();
  context.lineWidth = 2;
  context.strokeStyle = dark.matches ? "#8fb1ff" : "#2b58cf";
  context.stroke();
}

function brush(context, view, { x, y, radius }) {
  const at = view.toScreen(x, y);
  ring(context, at, radius, 5, ground());
  ring(context, at, radius, 2, ink());
  ring(context, at, 1.5, 2, ink());
}

function selection(context, view, points, selected) {
  context.fillStyle = dark.matches ? "rgb(255 255 255 / 75%)" : "rgb(18 21 27 / 62%)";
  const step = Math.ceil(selected.length / 20000);
  for (let k = 0; k < selected.length; k += step) {
    const [x, y] = view.toScreen(points[2 * selected[k]], points[2 * selected[k] + 1]);
    context.fillRect(x - 1.2, y - 1.2, 2.4, 2.4);
  }
}

/** Draw all of it. `scene`: points, marks, selected, current, hovered, corners, brush. */
export function drawOverlay(canvas, view, ratio, scene) {
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, view.width, view.height);
  selection(context, view, scene.points, scene.selected);
  labelled(context, view, scene);
  if (scene.current >= 0) target(context, view, scene.points, scene.current);
  if (scene.hovered >= 0) {
    const { points, hovered } = scene;
    ring(context, view.toScreen(points[2 * hovered], points[2 * hovered + 1]), 7, 2, ink());
  }
  if (scene.corners.length > 1) lasso(context, scene.corners);
  if (scene.brush) brush(context, view, scene.brush);
}
