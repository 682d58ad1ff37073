// What the parts of the page tell each other, by name:
//   state       /api/state was read                  current    another row or selection is shown
//   saved       an answer is on the server's disk    refused    the server did not take an answer
//   undone      the last answer was taken back       outbox     the number of unsent answers changed
//   connection  "open", "gone" or "refused"          problem    a sentence for the user

const listeners = new Map();

/** Call `listener` with the detail of every event of this name. */
export function on(name, listener) {
  if (!listeners.has(name)) listeners.set(name, []);
  listeners.get(name).push(listener);
}

/** Tell all listeners of this name. */
export function emit(name, detail) {
  for (const listener of listeners.get(name) ?? []) listener(detail);
}
