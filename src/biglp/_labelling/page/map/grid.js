// Points sorted into the cells of a grid, to find the nearest one and those inside a line quickly.

const CELLS = 256;
const cell = (v) => Math.min(CELLS - 1, Math.max(0, Math.floor(((v + 1) / 2) * CELLS)));

export class Grid {
  /** points: Float32Array of x, y pairs in [-1, 1]. */
  constructor(points) {
    this.points = points;
    const n = points.length / 2;
    const of = new Uint16Array(n);
    this.starts = new Uint32Array(CELLS * CELLS + 1);
    for (let i = 0; i < n; i += 1) {
      of[i] = cell(points[2 * i + 1]) * CELLS + cell(points[2 * i]);
      this.starts[of[i] + 1] += 1;
    }
    for (let c = 0; c < CELLS * CELLS; c += 1) this.starts[c + 1] += this.starts[c];
    const next = this.starts.slice();
    this.order = new Uint32Array(n);
    for (let i = 0; i < n; i += 1) {
      this.order[next[of[i]]] = i;
      next[of[i]] += 1;
    }
  }

  /** Call `visit(point)` for all points in the cells that a box touches. */
  inBox(x0, y0, x1, y1, visit) {
    for (let cy = cell(y0); cy <= cell(y1); cy += 1) {
      const from = this.starts[cy * CELLS + cell(x0)];
      const to = this.starts[cy * CELLS + cell(x1) + 1];
      for (let k = from; k < to; k += 1) visit(this.order[k]);
    }
  }

  /** The point nearest to (x, y) inside an ellipse of half-widths rx and ry, or -1. */
  nearest(x, y, rx, ry) {
    let best = 1;
    let found = -1;
    this.inBox(x - rx, y - ry, x + rx, y + ry, (i) => {
      const dx = (this.points[2 * i] - x) / rx;
      const dy = (this.points[2 * i + 1] - y) / ry;
      const distance = dx * dx + dy * dy;
      if (distance <= best) {
        best = distance;
        found = i;
      }
    });
    return found;
  }

  /** All points inside an ellipse. */
  inEllipse(x, y, rx, ry) {
    const found = [];
    this.inBox(x - rx, y - ry, x + rx, y + ry, (i) => {
      const dx = (this.points[2 * i] - x) / rx;
      const dy = (this.points[2 * i + 1] - y) / ry;
      if (dx * dx + dy * dy <= 1) found.push(i);
    });
    return found;
  }

  /** All points inside a closed line of [x, y] corners. */
  inPolygon(corners) {
    const xs = corners.map(([x]) => x);
    const ys = corners.map(([, y]) => y);
    const found = [];
    this.inBox(Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys), (i) => {
      if (isInside(this.points[2 * i], this.points[2 * i + 1], xs, ys)) found.push(i);
    });
    return found;
  }
}

/** Whether a ray to the right crosses the line an odd number of times. */
function isInside(x, y, xs, ys) {
  let inside = false;
  for (let i = 0, j = xs.length - 1; i < xs.length; j = i, i += 1) {
    if ((ys[i] > y) !== (ys[j] > y)
      && x < ((xs[j] - xs[i]) * (y - ys[i])) / (ys[j] - ys[i]) + xs[i]) inside = !inside;
  }
  return inside;
}
