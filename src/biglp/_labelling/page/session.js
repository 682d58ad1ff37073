// What is shown and what an answer does to it. The next rows are here before they are needed, so
// an answer shows the next row at once; "saved" is said later, when the server has confirmed.

import { getJSON, newAnswerId } from "./api.js";
import { emit, on } from "./hub.js";
import { isUnsent, recall, send } from "./outbox.js";
import { noticeFailure, state } from "./state.js";

const AHEAD = 8;
const JUST_NOW_MS = 3000;

/** mode: "next" (rows in the server's order), "look" (a row somebody picked) or "many". */
export let current = { mode: "wait", card: null, rows: [], tally: [] };
let ahead = [];
let asking = false;
/** Rows answered a moment ago: a list of next rows made before that may still name them. */
const answered = new Map();

function show(mode, card, rows = card ? [card.row] : [], tally = []) {
  current = { mode, card, rows, tally };
  emit("current", current);
}

function isAnswered(row) {
  return isUnsent(row) || Date.now() - (answered.get(row) ?? -Infinity) < JUST_NOW_MS;
}

/** Have the pictures of a card in the browser before it is shown. */
function preload(card) {
  if (card.content.kind === "image" && !card.picture) {
    card.picture = new Image();
    card.picture.src = card.content.src;
  }
  for (const each of card.nearest) {
    if (each.content.kind === "image") new Image().src = each.content.src;
  }
}

function take(cards) {
  ahead = cards.filter((card) => !isAnswered(card.row) && card.row !== current.card?.row);
  ahead.forEach(preload);
  if (current.mode === "wait" && ahead.length > 0) show("next", ahead.shift());
}

/** Ask for the next rows. */
export async function refill() {
  if (asking) return;
  asking = true;
  try {
    take((await getJSON(`/api/next?n=${AHEAD}`)).cards);
    if (current.mode === "wait") show("wait", null);
  } catch (error) {
    if (!noticeFailure(error)) emit("problem", error.message);
  } finally {
    asking = false;
  }
}

function advance() {
  ahead = ahead.filter((card) => !isAnswered(card.row));
  if (ahead.length > 0) show("next", ahead.shift());
  else show("wait", null);
  if (ahead.length < 2) refill();
}

/** Give what is shown a label: one row, or all rows of the selection as one step. */
export function answer(label) {
  const name = label.trim();
  if (!name || current.rows.length === 0) return;
  const { rows } = current;
  const now = Date.now();
  for (const row of rows) answered.set(row, now);
  if (rows.length === 1) send("answer", newAnswerId(), rows, { row: rows[0], label: name });
  else send("answers", newAnswerId(), rows, { rows, label: name });
  advance();
}

/** Take the model's guess as the answer. */
export function accept() {
  if (current.card?.guess) answer(current.card.guess.label);
  else emit("problem", "The model has no guess to accept; press the digit of a class, or type its name.");
}

/** Leave this row for later. */
export function skip() {
  if (current.mode !== "next") return back();
  const { row } = current.card;
  answered.set(row, Date.now());
  send("skip", newAnswerId(), [row], { row });
  return advance();
}

/** Take back the last answer: one that was not sent yet here, else the server's last. */
export function undo() {
  const item = recall();
  if (item) return retract(item.rows, item.content.label ?? null);
  if (state?.can_undo || isBusy()) send("undo", newAnswerId(), [], {});
  else emit("problem", "There is nothing to undo.");
  return undefined;
}

const isBusy = () => [...answered.values()].some((time) => Date.now() - time < JUST_NOW_MS);

function retract(rows, label) {
  for (const row of rows) answered.delete(row);
  emit("retracted", { rows, label });
  if (rows.length === 1) look(rows[0], "next");
}

/** Show one row that somebody picked on the map, among the doubts or the neighbours. */
export async function look(row, mode = "look") {
  try {
    const card = await getJSON(`/api/row/${row}`);
    preload(card);
    if (current.mode === "next" && current.card.row !== row) ahead.unshift(current.card);
    ahead = ahead.filter((each) => each.row !== row);
    show(mode, card);
  } catch (error) {
    if (!noticeFailure(error)) emit("problem", error.message);
  }
}

/** Show many rows at once, to give them all one label; `tally` has [class, number] of them. */
export function select(rows, tally) {
  if (rows.length === 0) return;
  if (rows.length === 1) {
    look(rows[0]);
    return;
  }
  if (current.mode === "next") ahead.unshift(current.card);
  show("many", null, rows, tally);
}

/** From a picked row or a selection back to the row that was next. */
export function back() {
  if (current.mode === "look" || current.mode === "many") advance();
}

/** Somebody else may have answered the row shown here, or the model has its first guess for it.
 *  A guess that is shown stays: it must not change under the finger that accepts it. */
async function checkShown() {
  const { card: shown, mode } = current;
  if (!shown || isUnsent(shown.row)) return;
  const found = await getJSON(`/api/row/${shown.row}`).catch(() => null);
  if (!found || current.card !== shown) return;
  if (mode === "next" && found.label !== null && found.label !== shown.label) {
    emit("problem", `Row ${shown.row} was labelled “${found.label}” in another window.`);
    advance();
  } else if (!shown.guess && found.guess) {
    show(mode, { ...found, why: shown.why, picture: shown.picture });
  }
}

/** Follow the server: its next rows after every answer, and changes made elsewhere. */
export function startSession() {
  on("saved", ({ item, reply }) => {
    for (const row of item.rows) answered.set(row, Date.now());
    take(reply.next);
    if (current.mode === "wait") refill();
  });
  on("undone", ({ reply }) => {
    take(reply.next);
    if (reply.undone) retract(reply.undone.rows, reply.undone.label);
    else emit("problem", "There is nothing to undo.");
  });
  on("refused", ({ item, message }) => {
    emit("problem", message);
    if (item.kind !== "undo") retract(item.rows, null);
  });
  on("state", ({ before }) => {
    const fitted = before && state.model.labels !== before.model.labels;
    if (!before || fitted || state.server !== before.server) refill();
    const elsewhere = before && state.labelled !== before.labelled;
    if (elsewhere || (state.model.state === "ready" && current.card && !current.card.guess)) checkShown();
  });
  on("connection", (connection) => { if (connection === "open") refill(); });
}
