// Which part of the map is seen: data in [-1, 1] to pixels and back.

const MARGIN = 0.94;
const MOST = 4000;

export class View {
  constructor() {
    this.width = 1;
    this.height = 1;
    this.reset();
  }

  reset() {
    this.zoom = 1;
    this.x = 0;
    this.y = 0;
  }

  /** Pixels for one unit of data, across and upwards; the map fills its panel. */
  get scaleX() { return (this.width / 2) * MARGIN * this.zoom; }

  get scaleY() { return (this.height / 2) * MARGIN * this.zoom; }

  toScreen(x, y) {
    return [this.width / 2 + (x - this.x) * this.scaleX, this.height / 2 - (y - this.y) * this.scaleY];
  }

  toData(px, py) {
    return [this.x + (px - this.width / 2) / this.scaleX, this.y - (py - this.height / 2) / this.scaleY];
  }

  pan(dx, dy) {
    this.x -= dx / this.scaleX;
    this.y += dy / this.scaleY;
    this.keepInside();
  }

  /** Zoom so that the data under this pixel stay there. */
  zoomAt(factor, px, py) {
    const [x, y] = this.toData(px, py);
    this.zoom = Math.min(MOST, Math.max(1, this.zoom * factor));
    const [nx, ny] = this.toData(px, py);
    this.x += x - nx;
    this.y += y - ny;
    this.keepInside();
  }

  keepInside() {
    const free = 1 - 1 / this.zoom;
    this.x = Math.min(free, Math.max(-free, this.x));
    this.y = Math.min(free, Math.max(-free, this.y));
  }

  /** How much a point covers: many points show by their density where they are many. */
  opacity(n) {
    return Math.min(0.85, 0.85 * (20000 / Math.max(1, n)) ** 0.25 * this.zoom ** 0.5);
  }

  /** Width of a point in pixels: small when there are many, larger when few are seen. */
  pointSize(n) {
    const base = Math.sqrt((this.width * this.height) / Math.max(1, n));
    return Math.min(10, Math.max(1.6, base * 0.42) * this.zoom ** 0.3);
  }
}
