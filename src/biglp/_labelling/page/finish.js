// Finish: fit on all rows and write the files, with progress; export of the labels given.

import { Answered, postJSON } from "./api.js";
import { say } from "./announce.js";
import { byId, count, el, number } from "./dom.js";
import { on } from "./hub.js";
import { noticeFailure, refresh, state } from "./state.js";

let asked = false;

async function begin() {
  asked = true;
  fill();
  try {
    await postJSON("/api/finish", {});
    await refresh();
  } catch (error) {
    noticeFailure(error);
    byId("finish-problem").textContent = error instanceof Answered
      ? error.message : "The server is gone; try again when it is back.";
  } finally {
    asked = false;
  }
}

function before() {
  return [
    el("p", {}, `The model learns from your ${count(state.labelled, "label")} and gives every one `
      + `of the ${count(state.rows, "row")} a class. This runs beside your work; you can go on labelling.`),
    el("p", {}, "It writes the labels of all rows, the model, and a report."),
  ];
}

function running({ step, done, total }) {
  const bar = el("progress", { "aria-label": "Progress", max: total || 1 });
  if (total > 0) bar.value = done;
  const share = total > 0 ? ` · ${number(done)} of ${number(total)}` : "";
  return [el("p", {}, "Fitting on all rows. You can close this and go on labelling."), bar,
    el("p", { class: "small" }, (step ?? "Starting") + share)];
}

function done({ folder, files }) {
  return [el("p", {}, "Done. The files are in ", el("strong", {}, folder ?? ""), ":"),
    el("ul", { class: "files" }, ...files.map((file) => el("li", {}, file)))];
}

function fill() {
  const dialog = byId("finish-dialog");
  const { finish } = state;
  const isRunning = finish.state === "running" || asked;
  const parts = { no: before, running: () => running(finish), done: () => done(finish), failed: before };
  const open = document.activeElement?.id;
  dialog.replaceChildren(
    el("h2", { id: "finish-title" }, "Finish"),
    ...(isRunning ? running(finish) : parts[finish.state]()),
    el("p", { class: "problem", id: "finish-problem", role: "alert" },
      finish.state === "failed" ? finish.message ?? "It failed." : ""),
    el("p", { class: "small" }, "The labels you gave, as a file: ",
      el("a", { href: "/api/export?format=csv", download: true }, "CSV"), " · ",
      el("a", { href: "/api/export?format=jsonl", download: true }, "JSON lines")),
    el("div", { class: "dialog-tools" },
      el("button", { type: "button", class: "quiet", id: "finish-close", onclick: () => dialog.close() }, "Close"),
      el("button", { type: "button", id: "finish-start", disabled: isRunning || state.labelled === 0,
        onclick: begin }, finish.state === "done" ? "Run again" : "Label all rows")));
  if (open && byId(open) && dialog.contains(byId(open))) byId(open).focus();
}

/** Show what finishing means, how far it is, or what it wrote. */
export function openFinish() {
  if (!state) return;
  fill();
  byId("finish-dialog").showModal();
  const start = byId("finish-start");
  (start.disabled ? byId("finish-close") : start).focus();
}

export function startFinish() {
  byId("open-finish").addEventListener("click", openFinish);
  on("state", ({ before: earlier }) => {
    if (byId("finish-dialog").open) fill();
    const was = earlier?.finish.state;
    const now = state.finish.state;
    if (was === "running" && now === "done") say("Finished. All rows are labelled.");
    if (was === "running" && now === "failed") say(`Finish failed. ${state.finish.message ?? ""}`);
  });
}
