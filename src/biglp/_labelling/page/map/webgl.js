// Points drawn by the graphics card. The same interface as canvas.js: setPoints, setColours, paint.
// Written against WebGL itself: libraries such as regl make functions from text, which the page's
// content security policy forbids.

const VERTEX = `
attribute vec2 place;
attribute vec4 colour;
uniform vec2 middle;
uniform vec2 scale;
uniform mediump float size;
varying vec4 shade;
void main() {
  gl_Position = vec4((place - middle) * scale, 0.0, 1.0);
  gl_PointSize = size;
  shade = colour;
}`;
const FRAGMENT = `
precision mediump float;
uniform mediump float size;
uniform mediump float opacity;
varying vec4 shade;
void main() {
  float off = length(gl_PointCoord - 0.5) * size;
  float cover = size < 2.5 ? 1.0 : clamp(size / 2.0 - off + 0.5, 0.0, 1.0);
  gl_FragColor = vec4(shade.rgb, 1.0) * opacity * cover;
}`;

function shader(gl, kind, text) {
  const made = gl.createShader(kind);
  gl.shaderSource(made, text);
  gl.compileShader(made);
  if (!gl.getShaderParameter(made, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(made));
  return made;
}

export class WebGLPainter {
  /** Throws when the browser has no WebGL. */
  constructor(canvas) {
    this.canvas = canvas;
    const gl = canvas.getContext("webgl", { antialias: false, premultipliedAlpha: true });
    if (!gl) throw new Error("no WebGL");
    this.gl = gl;
    const program = gl.createProgram();
    gl.attachShader(program, shader(gl, gl.VERTEX_SHADER, VERTEX));
    gl.attachShader(program, shader(gl, gl.FRAGMENT_SHADER, FRAGMENT));
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    gl.useProgram(program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.uniforms = Object.fromEntries(["middle", "scale", "size", "opacity"]
      .map((name) => [name, gl.getUniformLocation(program, name)]));
    this.places = this.attribute(program, "place", 2, gl.FLOAT, 8);
    this.colours = this.attribute(program, "colour", 4, gl.UNSIGNED_BYTE, 4);
    this.n = 0;
  }

  attribute(program, name, width, type, bytes) {
    const { gl } = this;
    const at = gl.getAttribLocation(program, name);
    gl.enableVertexAttribArray(at);
    return { buffer: gl.createBuffer(), at, width, type, bytes };
  }

  setPoints(points) {
    this.n = points.length / 2;
    this.fill(this.places, points);
  }

  /** colours: Uint8Array of red, green, blue, alpha. */
  setColours(colours) {
    this.fill(this.colours, colours);
  }

  fill({ buffer }, values) {
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, buffer);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, values, this.gl.STATIC_DRAW);
  }

  /** Paint every `step`-th point (at most 31: a stride has 255 bytes). */
  paint(view, ratio, step = 1) {
    const { gl, canvas, uniforms } = this;
    for (const { buffer, at, width, type, bytes } of [this.places, this.colours]) {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.vertexAttribPointer(at, width, type, type === gl.UNSIGNED_BYTE, bytes * step, 0);
    }
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniform2f(uniforms.middle, view.x, view.y);
    gl.uniform2f(uniforms.scale, view.scaleX / (view.width / 2), view.scaleY / (view.height / 2));
    gl.uniform1f(uniforms.size, view.pointSize(this.n) * ratio);
    gl.uniform1f(uniforms.opacity, view.opacity(this.n));
    gl.drawArrays(gl.POINTS, 0, Math.ceil(this.n / step));
  }
}
