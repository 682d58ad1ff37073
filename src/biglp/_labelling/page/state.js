// The server's state as last read, and the stream that tells when it has changed.

import { Gone, Refused, getJSON } from "./api.js";
import { emit } from "./hub.js";

const RETRY_MS = 1000;

export let state = null;
let reading = null;
let again = false;
let connection = "";
let events = null;

/** Read /api/state; calls while one is under way are answered by one more read after it. */
export async function refresh() {
  if (reading) {
    again = true;
    return reading;
  }
  reading = (async () => {
    do {
      again = false;
      const found = await getJSON("/api/state");
      noticeSuccess();
      const before = state;
      state = found;
      emit("state", { state, before });
    } while (again);
  })();
  try {
    await reading;
  } finally {
    reading = null;
  }
  return state;
}

/** Class of this name, or undefined. */
export const classNamed = (name) => state?.classes.find((each) => each.name === name);

/** Classes in the order of their keys (digits, then those without), each with its place for the colour. */
export const classesByKey = () => state.classes.map((each, index) => ({ ...each, index }))
  .sort((a, b) => (a.key ? a.key.codePointAt(0) : 1e9) - (b.key ? b.key.codePointAt(0) : 1e9));

export const isOpen = () => connection === "open";

function become(next) {
  if (connection === next) return;
  connection = next;
  emit("connection", next);
}

/** Tell the page what a failed request says about the server; true when it was about that. */
export function noticeFailure(error) {
  if (error instanceof Refused) become("refused");
  else if (error instanceof Gone) become("gone");
  else return false;
  return true;
}

/** A request was answered: if the stream of events never broke, the server is back. */
export function noticeSuccess() {
  if (events?.readyState === EventSource.OPEN) become("open");
}

/** Listen to the server for ever; when it goes away, look for it every second. */
export async function listen() {
  try {
    await refresh();
  } catch (error) {
    if (!noticeFailure(error)) emit("problem", error.message);
    setTimeout(listen, RETRY_MS);
    return;
  }
  events = new EventSource("/api/events");
  events.onopen = () => become("open");
  events.onmessage = (message) => {
    const { version, server } = JSON.parse(message.data);
    if (version === state.version && server === state.server) return;
    refresh().catch(noticeFailure);
  };
  events.onerror = () => {
    events.close();
    become("gone");
    setTimeout(listen, RETRY_MS);
  };
}
