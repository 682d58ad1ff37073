/* What style sheets cannot do alone: names in CamelCase break between words and names of files between
   folders, and on a phone tables of sentences stand cell below cell, and wide pictures can be moved sideways. */
const LONG = 60; // letters: a cell with more holds a sentence
const WIDE = 640; // pixels: a picture whose letters cannot be read on a phone

function breakNames(element, where = /(?<=[a-z])(?=[A-Z])/, least = 3) {
  const walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walk.nextNode()) texts.push(walk.currentNode);
  for (const text of texts) {
    const words = text.data.split(where);
    if (words.length < least) continue;
    text.replaceWith(...words.flatMap((word) => [document.createElement("wbr"), word]).slice(1));
  }
}

function stack(table) {
  const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
  const cells = [...table.querySelectorAll("tbody td")];
  if (heads.length < 3 || !cells.some((cell) => cell.textContent.trim().length > LONG)) return;
  table.classList.add("stacked");
  for (const cell of cells) {
    cell.dataset.head = heads[cell.cellIndex] || "";
    if (!cell.textContent.trim()) cell.classList.add("empty");
  }
}

function move(image) {
  if (image.naturalWidth < WIDE || image.closest("a, .sphx-glr-thumbcontainer, .sd-card")) return;
  const frame = document.createElement("div");
  frame.className = "wide";
  frame.tabIndex = 0; // so that a keyboard can move it
  image.replaceWith(frame);
  frame.append(image);
}

document.addEventListener("DOMContentLoaded", () => {
  const all = (where) => document.querySelectorAll(where);
  all("article.bd-article h1, nav.bd-links a, nav.page-toc a").forEach((name) => breakNames(name));
  for (const code of all("article.bd-article code"))
    if (/^(?=.{2,25}$)-\S+( [^\s-]\S*)?$/.test(code.textContent)) code.classList.add("option"); // no break at its hyphens
  for (const code of all("article.bd-article table code"))
    if (code.textContent.length > 12 && !code.closest(".autosummary")) // numbers, dates, the reference stay whole
      breakNames(code, /(?<=[a-z])(?=[A-Z])|(?<=[/(,=])(?=\w)/, 2);
  all("article.bd-article table").forEach(stack);
  for (const table of all("article.bd-article .highlight pre"))
    if (table.textContent.includes("┏")) table.classList.add("drawn");
  if (window.matchMedia("(max-width: 600px)").matches)
    for (const image of all("article.bd-article img"))
      if (image.complete) move(image);
      else image.addEventListener("load", () => move(image));
});
