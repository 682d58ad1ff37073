// Requests to the server. Three things can go wrong, and callers tell them apart:
// the server is gone (Gone), it knows us no more (Refused), or it says no to this request (Answered).

export class Gone extends Error {}
export class Refused extends Error {}
export class Answered extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch (error) {
    throw new Gone(error.message);
  }
  if (response.status === 401 || response.status === 403) throw new Refused("403");
  if (!response.ok) {
    if (response.status === 413) throw new Answered("These are too many rows at once; select fewer.", 413);
    const found = await response.json().catch(() => ({}));
    throw new Answered(found.error ?? `The server answered ${response.status}.`, response.status);
  }
  return response;
}

/** The body, where a stream that breaks in the middle counts as a server that is gone. */
async function body(response, kind) {
  try {
    return await response[kind]();
  } catch (error) {
    throw new Gone(error.message);
  }
}

export const getJSON = async (path) => body(await ask(path), "json");

export async function getBytes(path) {
  const response = await ask(path);
  return { headers: response.headers, bytes: await body(response, "arrayBuffer") };
}

export async function postJSON(path, content) {
  const headers = { "Content-Type": "application/json", "X-Biglp": "1" };
  return body(await ask(path, { method: "POST", headers, body: JSON.stringify(content) }), "json");
}

/** A name for an answer that the server will see once only, however often it is sent. */
export function newAnswerId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
