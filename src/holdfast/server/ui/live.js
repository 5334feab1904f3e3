// What happens in the store, as it happens. The stream is read by hand rather than by EventSource: so it can
// go on after the last event that was seen, whatever ended it, and hear events of every type.

import { signal } from "./vendor/preact.js";

/** {state: "off" | "connecting" | "live" | "stale" | "paused", since: ms, held: events that wait}. */
export const live = signal({ state: "off", since: Date.now(), held: 0 });

const SILENCE_MS = 45_000;
const GATHER_MS = 300;
const HIDDEN_MS = 60_000;
const RETRY_MS_MAX = 30_000;
const LASTING_MS = 5_000;

const listeners = new Set();
let lastId = "";
let stream = null;
let gathered = [];
let gatherTimer = 0;
let silenceTimer = 0;
let retryTimer = 0;
let hiddenTimer = 0;
let retryMs = 1000;
let onRefused = () => {};

/** Say what is to be done when the server does not know who listens. */
export function whenRefused(work) {
  onRefused = work;
}

/** Hear of events, gathered for a moment: a list; null among them means that some may have been missed. */
export function onEvents(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function change(state) {
  if (live.value.state !== state) live.value = { ...live.value, state, since: Date.now() };
}

export function begin() {
  if (stream) return;
  // Who tries again is as stale as before.
  if (!["paused", "stale"].includes(live.value.state)) change("connecting");
  const mine = new AbortController();
  stream = mine;
  const begunAt = Date.now();
  listen(mine).then(() => Date.now() - begunAt >= LASTING_MS, () => false).then((hasLasted) => {
    if (stream !== mine) return;
    stream = null;
    // No stream lasts for ever: one that was ended in order goes on at once.
    if (hasLasted) begin();
    else lost();
  });
}

export function end() {
  const mine = stream;
  stream = null;
  mine?.abort();
  [silenceTimer, retryTimer, gatherTimer].forEach(clearTimeout);
  gatherTimer = 0;
  change("off");
}

async function listen(mine) {
  const headers = { Accept: "text/event-stream", ...(lastId ? { "Last-Event-ID": lastId } : {}) };
  const response = await fetch("/v1/events", { headers, signal: mine.signal, credentials: "same-origin" });
  // A server that was started again knows nobody: whoever sits here has to sign in anew.
  if (response.status === 401) onRefused();
  if (!response.ok || !response.body) throw new Error(`events: ${response.status}`);
  heard();
  if (!lastId && live.value.wasLost) take(null);
  retryMs = 1000;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    heard();
    const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
    rest = blocks.pop();
    blocks.forEach(read);
  }
}

function read(block) {
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("id:")) lastId = line.slice(3).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  if (!data.length) return;
  try {
    take(JSON.parse(data.join("\n")));
  } catch {
    // What cannot be read still tells that something happened.
    take(null);
  }
}

function heard() {
  if (live.value.state !== "paused") change("live");
  clearTimeout(silenceTimer);
  silenceTimer = setTimeout(() => stream?.abort(), SILENCE_MS);
}

function lost() {
  stream = null;
  clearTimeout(silenceTimer);
  live.value = { ...live.value, wasLost: true };
  if (live.value.state !== "paused") change("stale");
  clearTimeout(retryTimer);
  retryTimer = setTimeout(begin, retryMs);
  retryMs = Math.min(retryMs * 2, RETRY_MS_MAX);
}

function take(event) {
  gathered.push(event);
  if (gathered.length > 1000) gathered = [null];
  if (live.value.state === "paused") live.value = { ...live.value, held: live.value.held + 1 };
  else if (!gatherTimer) gatherTimer = setTimeout(tell, GATHER_MS);
}

function tell() {
  gatherTimer = 0;
  const events = gathered;
  gathered = [];
  if (events.length) for (const listener of [...listeners]) listener(events);
}

/** Hold back what happens, or let it through again. */
export function togglePause() {
  if (live.value.state === "paused") {
    live.value = { ...live.value, state: stream ? "live" : "stale", since: Date.now(), held: 0 };
    tell();
  } else {
    live.value = { ...live.value, state: "paused", since: Date.now(), held: 0 };
  }
}

// A browser has few connections for one server: a page that nobody looks at gives its stream back.
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiddenTimer);
  if (document.hidden) {
    if (stream) hiddenTimer = setTimeout(rest, HIDDEN_MS);
  } else if (live.value.state === "off" && listeners.size) {
    begin();
  }
});

function rest() {
  if (live.value.state !== "paused") end();
}
