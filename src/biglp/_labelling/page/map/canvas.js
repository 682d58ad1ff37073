// Points drawn without WebGL, pixel by pixel. The same interface as webgl.js.

export class CanvasPainter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.points = new Float32Array(0);
    this.colours = new Uint8Array(0);
  }

  setPoints(points) {
    this.points = points;
  }

  setColours(colours) {
    this.colours = colours;
  }

  /** Squares of whole pixels, without blending: a million points take some hundredths of a second. */
  paint(view, ratio, step = 1) {
    const { width, height } = this.canvas;
    const image = this.context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const n = this.points.length / 2;
    const colours = new Uint32Array(this.colours.buffer, this.colours.byteOffset, n);
    const side = Math.max(1, Math.round(view.pointSize(n) * ratio * 0.85));
    const kx = view.scaleX * ratio;
    const ky = view.scaleY * ratio;
    const left = width / 2 - view.x * kx - side / 2;
    const top = height / 2 + view.y * ky - side / 2;
    for (let i = 0; i < n; i += step) {
      const x = Math.round(left + this.points[2 * i] * kx);
      const y = Math.round(top - this.points[2 * i + 1] * ky);
      if (x < 0 || y < 0 || x + side > width || y + side > height) continue;
      for (let row = y; row < y + side; row += 1) {
        pixels.fill(colours[i], row * width + x, row * width + x + side);
      }
    }
    this.context.putImageData(image, 0, 0);
  }
}
