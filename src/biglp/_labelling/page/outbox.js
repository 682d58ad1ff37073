// Answers on their way to the server, in the order they were given. Each has an id of its own, so
// that sending it again after a lost reply saves it once. Unsent answers are kept in the browser's
// storage too: they outlive a reload of the page and a server that is away for long.

import { Answered, postJSON } from "./api.js";
import { emit, on } from "./hub.js";
import { isOpen, noticeFailure, noticeSuccess, state } from "./state.js";

const PREFIX = "biglp-unsent:";
const RETRY_MS = 1000;

const items = [];
let sending = false;
let timer = null;
let counter = 0;

/** Answers for other data must not reach this server, though it may have the same address. */
const place = () => `${state.data}|${state.labels_file}|${state.rows}`;

function keep(item) {
  try {
    localStorage.setItem(PREFIX + item.id, JSON.stringify(item));
  } catch {
    // Storage is full or switched off: the answer still waits in memory.
  }
}

function forget(item) {
  try {
    localStorage.removeItem(PREFIX + item.id);
  } catch {
    // As above.
  }
}

/** Number of answers that the server has not confirmed. */
export const unsent = () => items.length;

/** Whether an answer about this row is on its way. */
export const isUnsent = (row) => items.some((item) => item.rows.includes(row));

/** Take back the last answer if it was never sent; returns it, or null. */
export function recall() {
  const last = items.at(-1);
  if (!last || last.tried || last.kind === "undo") return null;
  items.pop();
  forget(last);
  emit("outbox", items.length);
  return last;
}

/** Put an answer in line. `kind` is answer, answers, skip or undo. */
export function send(kind, id, rows, content) {
  counter += 1;
  const order = Date.now() + counter / 1000;
  const item = { kind, id, rows, content, order, place: place(), tried: false };
  items.push(item);
  keep(item);
  emit("outbox", items.length);
  flush();
}

function settle(item) {
  items.shift();
  forget(item);
  emit("outbox", items.length);
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(flush, RETRY_MS);
}

async function flush() {
  if (sending) return;
  sending = true;
  try {
    while (items.length > 0) {
      const item = items[0];
      item.tried = true;
      let reply;
      try {
        reply = await postJSON(`/api/${item.kind}`, { ...item.content, answer: item.id });
      } catch (error) {
        if (error instanceof Answered && error.status < 500) {
          settle(item);
          emit("refused", { item, message: error.message });
          continue;
        }
        if (!noticeFailure(error)) emit("problem", `${error.message} It will be sent again.`);
        later();
        return;
      }
      noticeSuccess();
      settle(item);
      emit(item.kind === "undo" ? "undone" : "saved", { item, reply });
    }
  } finally {
    sending = false;
  }
}

/** Answers that an earlier visit could not send. */
function collect() {
  const known = new Set(items.map((item) => item.id));
  const found = [];
  for (let i = 0; i < localStorage.length; i += 1) {
    const key = localStorage.key(i);
    if (!key.startsWith(PREFIX)) continue;
    const item = JSON.parse(localStorage.getItem(key));
    if (item.place === place() && !known.has(item.id)) found.push(item);
  }
  items.unshift(...found.sort((a, b) => a.order - b.order));
  if (found.length > 0) emit("outbox", items.length);
}

/** Begin: what an earlier visit left is sent first, and everything when the server comes back. */
export function startOutbox() {
  on("connection", () => { if (isOpen()) flush(); });
  try {
    collect();
  } catch {
    // No storage, nothing was kept.
  }
  flush();
}
