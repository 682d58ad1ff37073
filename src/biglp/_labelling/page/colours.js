// Colours of classes. Neighbours in the list differ in lightness too, so that they stay apart for
// people who see few hues (checked for the three kinds of colour blindness) and in grey print.

const LIGHT = [
  "#0b62c4", "#e08a00", "#6b1d4f", "#00a884", "#c0221b", "#14149a",
  "#ad82f7", "#963c78", "#0b3310", "#00b9bd", "#7b6dab", "#8a1fe8",
];
const DARK = [
  "#5aa9ff", "#f5a623", "#d64aa2", "#8ff0d0", "#5560ff", "#eef26a",
  "#8b9a24", "#b85a34", "#ff8ed2", "#9a52e0", "#93a0ff", "#ffd9a0",
];
export const dark = matchMedia("(prefers-color-scheme: dark)");

/** "#rrggbb" of the class at this place; after twelve the colours come again. */
export function classColour(index) {
  const colours = dark.matches ? DARK : LIGHT;
  return colours[index % colours.length];
}

/** Points that no class is known for. */
export const unknownColour = () => (dark.matches ? "#4d5663" : "#b3bac4");

/** From sure (0, close to the ground) to doubtful (255, strong), one hue, even in lightness. */
export function doubtColour(doubt) {
  const [from, to] = dark.matches
    ? [[46, 54, 68], [255, 196, 92]] : [[214, 220, 230], [140, 30, 20]];
  const share = Math.sqrt(doubt / 255);
  return from.map((value, i) => Math.round(value + (to[i] - value) * share));
}

/** [r, g, b] of "#rrggbb". */
export const parts = (hex) => [1, 3, 5].map((i) => Number.parseInt(hex.slice(i, i + 2), 16));
