// What the map shows, read from the server: places once, colours whenever the model has changed.

import { getBytes, getJSON } from "../api.js";
import { classColour, doubtColour, parts, unknownColour } from "../colours.js";

export const UNKNOWN = 255;

/** Places and row numbers of the points. */
export async function readPoints() {
  const [places, numbers] = await Promise.all([getBytes("/api/map/points"), getBytes("/api/map/rows")]);
  const points = new Float32Array(places.bytes);
  const rows = Float64Array.from(new BigInt64Array(numbers.bytes), Number);
  // The map may grow between the two requests.
  if (points.length !== 2 * rows.length) return readPoints();
  const at = new Map();
  rows.forEach((row, i) => at.set(row, i));
  return { points, rows, at };
}

/** Class and doubt of each point, and the labelled ones. */
export async function readColours() {
  const [colours, marks] = await Promise.all([getBytes("/api/map/colours"), getJSON("/api/map/labelled")]);
  return { pairs: new Uint8Array(colours.bytes), marks };
}

/** Red, green, blue and alpha of each point, by class or by doubt. */
export function paintColours(pairs, byDoubt) {
  const table = new Uint8Array(4 * 256);
  for (let value = 0; value < 256; value += 1) {
    const named = value === UNKNOWN ? unknownColour() : classColour(value);
    table.set([...(byDoubt ? doubtColour(value) : parts(named)), 255], 4 * value);
  }
  const quick = new Uint32Array(table.buffer);
  const found = new Uint32Array(pairs.length / 2);
  const from = byDoubt ? 1 : 0;
  for (let i = 0; i < found.length; i += 1) found[i] = quick[pairs[2 * i + from]];
  return new Uint8Array(found.buffer);
}

/** Number of points of each class among some of them; all when `among` is not given. */
export function tally(pairs, among) {
  const counts = new Uint32Array(256);
  if (among) for (const i of among) counts[pairs[2 * i]] += 1;
  else for (let i = 0; i < pairs.length; i += 2) counts[pairs[i]] += 1;
  return counts;
}
