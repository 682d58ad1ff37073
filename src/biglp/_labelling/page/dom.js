// Building the page. All text goes in as text nodes: a name that looks like HTML stays a name.

/** The element with this id; the page always has it. */
export const byId = (id) => document.getElementById(id);

/** A new element: attributes, `class`, `on…` listeners and `colour` (a CSS variable), then children. */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "colour") node.style.setProperty("--colour", value);
    else if (name === "width%") node.style.width = `${value}%`;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const whole = new Intl.NumberFormat("en");

/** 12345 → "12,345". */
export const number = (value) => whole.format(value);

/** "1 row", "2 rows". */
export const count = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;

/** 0.874 → "87 %"; never "100 %" or "0 %" unless it is exactly that. */
export function percent(share, digits = 0) {
  const step = 10 ** -digits;
  let value = 100 * share;
  if (share < 1) value = Math.min(value, 100 - step);
  if (share > 0) value = Math.max(value, step);
  return `${value.toFixed(digits)} %`;
}

/** What a row is called on the page. */
export const rowName = (card) => (card.id === null || card.id === undefined
  ? `Row ${number(card.row)}` : `Row ${number(card.row)} · ${card.id}`);
