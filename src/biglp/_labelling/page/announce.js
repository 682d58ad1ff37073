// What has happened, in words: the line in the head, the banner, and the live region that a screen
// reader reads out.

import { byId, count, number, percent } from "./dom.js";
import { on } from "./hub.js";
import { unsent } from "./outbox.js";
import { current } from "./session.js";
import { state } from "./state.js";

const GONE = "The server is gone. Trying again every second; "
  + "start the same command again if it has stopped.";
const REFUSED = "The server was started again and does not know this page. "
  + "Open the address that it printed.";
const SHOW_MS = 6000;

let connection = "open";
let problem = "";
let timer = null;

/** Let a screen reader say something. */
export function say(text) {
  byId("live").textContent = text;
}

function describeCurrent() {
  if (current.mode === "many") return `${count(current.rows.length, "row")} selected.`;
  if (!current.card) return "No further row yet.";
  const { card } = current;
  const text = card.content.kind === "text" ? `: ${card.content.text.slice(0, 300)}` : "";
  const guess = card.guess
    ? ` The model thinks ${card.guess.label}, ${percent(card.guess.probability)}.` : "";
  return `Now row ${number(card.row)}${text}.${guess}`;
}

function line(text, done = false) {
  byId("saved").textContent = text;
  byId("saved").classList.toggle("done", done);
}

function banner() {
  const waiting = unsent();
  const kept = waiting > 0 ? ` ${count(waiting, "answer")} not saved yet, kept in this browser.` : "";
  let text = problem;
  if (connection === "gone") text = GONE + kept;
  if (connection === "refused") text = REFUSED + kept;
  byId("banner").hidden = !text;
  byId("banner").textContent = text;
}

function showProblem(text) {
  problem = text;
  clearTimeout(timer);
  timer = setTimeout(() => {
    problem = "";
    banner();
  }, SHOW_MS);
  banner();
}

const what = (rows) => (rows.length === 1 ? `row ${number(rows[0])}` : count(rows.length, "row"));

export function startAnnouncing() {
  on("saved", ({ item }) => {
    const { label } = item.content;
    const done = label === undefined
      ? `Skipped ${what(item.rows)}` : `Saved ${what(item.rows)} as ${label}`;
    line(`✓ ${done}`, true);
    say(`${done}. ${describeCurrent()}`);
  });
  on("retracted", ({ rows, label }) => {
    const done = label === null
      ? `Took back ${what(rows)}` : `Took back ${label} from ${what(rows)}`;
    line(done);
    say(`${done}.`);
  });
  on("outbox", (waiting) => {
    if (waiting > 0) line(`Saving ${count(waiting, "answer")} …`);
    banner();
  });
  on("connection", (now) => {
    const came = connection !== "open" && now === "open";
    connection = now;
    if (came) say("The server is back.");
    banner();
  });
  on("problem", showProblem);
  on("state", () => {
    byId("data").textContent = `${state.data} · ${count(state.rows, "row")}`;
    document.title = `${state.data} · biglp label`;
    if (!byId("saved").textContent) {
      line(`${count(state.labelled, "label")} in ${state.labels_file}`);
    }
  });
}
