// Icons, and the statuses that they stand for: each has a tone, an icon, and what it means in words.

import { html } from "./vendor/preact.js";

const ICONS = {
  play: "M5 3.5v9l7-4.5z", pause: "M5 3v10M11 3v10", question:
    "M6 6a2 2 0 1 1 2.6 1.9c-.5.2-.6.6-.6 1.1M8 11.7v.1",
  bolt: "M9 2 4 9h3.5L7 14l5-7H8.5z", cross: "M4 4l8 8M12 4l-8 8", check: "M3 8.5 6.5 12 13 4.5",
  ring: "M8 3a5 5 0 1 0 0 10A5 5 0 0 0 8 3z", dot: "M8 7.5v1", warn: "M8 2.5 14 13H2zM8 6.5v3M8 11.2v.1",
  lock: "M4.5 7.5h7v5h-7zM6 7.5V5.5a2 2 0 0 1 4 0v2", home: "M2.5 8 8 3l5.5 5M4 7v6h8V7",
  runs: "M3 4h10M3 8h10M3 12h6", audit: "M4 2.5h8v11H4zM6 5.5h4M6 8h4M6 10.5h2",
  storage: "M3 4.5C3 3.4 5.2 2.5 8 2.5s5 .9 5 2-2.2 2-5 2-5-.9-5-2z"
    + "M3 4.5v7c0 1.1 2.2 2 5 2s5-.9 5-2v-7M3 8c0 1.1 2.2 2 5 2s5-.9 5-2",
  box: "M2.5 5 8 2.5 13.5 5v6L8 13.5 2.5 11zM2.5 5 8 7.5 13.5 5M8 7.5v6", chart:
    "M3 13V3M3 13h10M6 10V7M9 10V5M12 10V8",
  search: "M7 3a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM10 10l3 3", info:
    "M8 3a5 5 0 1 0 0 10A5 5 0 0 0 8 3zM8 7.5v3M8 5.4v.1",
  copy: "M6 6h7v7H6zM10 6V3H3v7h3", edit: "M3 13l.7-3L10.5 3.2l2.3 2.3L6 12.3z", pin: "M6 3h4l-.5 4L12 9H4l2.5-2zM8 9v4.5", fork:
    "M5 3v3c0 2 6 1 6 4v3M5 6v7M11 10",
  sun: "M8 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM8 2v1M8 13v1M2 8h1M13 8h1M4 4l.6.6"
    + "M11.4 11.4l.6.6M4 12l.6-.6M11.4 4.6l.6-.6",
  moon: "M12.5 9.5A5 5 0 0 1 6.5 3.5a5 5 0 1 0 6 6z", screen:
    "M2.5 3.5h11v7h-11zM6 13h4M8 10.5V13",
  left: "M10 3.5 5.5 8l4.5 4.5", right: "M6 3.5 10.5 8 6 12.5", down:
    "M3.5 6 8 10.5 12.5 6", more: "M4 8v.1M8 8v.1M12 8v.1",
  retry: "M12.5 5A5 5 0 1 0 13 8M13 2.5V5.5H10", link:
    "M7 9 11 5M6 5.5l1.5-1.5a2.6 2.6 0 0 1 4 4L10 9.5M10 10.5 8.5 12a2.6 2.6 0 0 1-4-4L6 6.5",
  before: "M7.5 4 3.5 8l4 4M12 6.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3z", after:
    "M8.5 4l4 4-4 4M4 6.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3z",
  plus: "M8 3.5v9M3.5 8h9", minus: "M3.5 8h9", swap: "M3 5.5h10M10.5 3 13 5.5 10.5 8M13 10.5H3M5.5 8 3 10.5 5.5 13",
  download: "M8 3v7M5 7.5 8 10.5l3-3M3 13h10", trash:
      "M3.5 4.5h9M6 4.5V3h4v1.5M5 4.5l.5 8.5h5l.5-8.5",
};

export function Icon({ name, label }) {
  return html`<svg class="icon" viewBox="0 0 16 16" aria-hidden=${label ? null : "true"} role=${label ? "img"
    : null}
    aria-label=${label || null}><path d=${ICONS[name] || ICONS.dot} /></svg>`;
}

// Tone, icon, and what it means in words.
const STATUSES = {
  running: ["info", "play", "A process works on it now."],
  waiting: ["warn", "question", "It waits for an answer of a person."],
  paused: ["violet", "pause", "Somebody paused it; it goes on when resumed."],
  crashed: ["bad", "bolt", "Its process ended without finishing; it can be recovered."],
  failed: ["bad", "cross", "It ended with an error."],
  completed: ["ok", "check", "It finished."],
  idle: ["quiet", "ring", "Nobody works on it, and nothing says that it should go on."],
  empty: ["quiet", "dot", "It has no checkpoint."],
  unreadable: ["bad", "warn", "It is damaged."],
  active: ["info", "play", "The work goes on after this checkpoint."],
  recovered: ["warn", "retry", "It was recovered, and nobody went on with it."],
  recovering: ["warn", "retry", "It is being recovered."],
  quarantined: ["bad", "lock", "It is damaged or suspect, and kept aside."],
  ok: ["ok", "check", ""], verified: ["ok", "check", ""], done: ["ok", "check", ""], success:
    ["ok", "check", ""],
  broken: ["bad", "cross", ""], missing: ["bad", "question", ""], failure: ["bad", "cross", ""],
  refused: ["warn", "lock", "It was not allowed."], inconclusive: ["warn", "question", ""],
  unanchored: ["warn", "warn", "No anchor outside of the store covers it yet."],
  anchored: ["ok", "lock", "An anchor outside of the store covers it."],
  planned: ["quiet", "ring", "It has not begun."], pending: ["quiet", "ring", "It has not begun."],
  open: ["info", "play", "It has begun, and not ended."],
  started: ["info", "play", "It has begun."], skipped: ["quiet", "right", "It was passed over."],
  gave_up: ["bad", "cross", "It failed, and is not tried again."], lost:
    ["bad", "bolt", "Its process died under it; another went on."],
  stopped: ["violet", "pause", "The run ended, paused or waits while it was at work."], gone:
    ["quiet", "trash", "It is not in the store any more."],
  cancelled: ["quiet", "cross", "Somebody cancelled it."], retried: ["warn", "retry", "It was tried again."],
  pinned: ["info", "pin", "It is kept whatever the retention says."], pruned:
    ["quiet", "trash", "Its state was removed."],
  added: ["ok", "dot", ""], removed: ["bad", "dot", ""], changed: ["warn", "dot", ""], moved:
    ["info", "dot", ""],
};

/** Tone of a status: ok, bad, warn, info, quiet or violet. */
export function toneOf(status) {
  return (STATUSES[status] || ["quiet"])[0];
}

export function Status({ value, title }) {
  const [tone, icon, meaning] = STATUSES[value] || ["quiet", "dot", ""];
  return html`<span class="badge ${tone}" title=${title || meaning || null} data-status=${value}>
    <${Icon} name=${icon} />${(value || "unknown").replaceAll("_", " ")}</span>`;
}

/** The icon of a status, as a path of 16 by 16. */
export function iconPath(status) {
  return ICONS[(STATUSES[status] || ["quiet", "dot"])[1]];
}

export function Badge({ tone = "quiet", icon, title, children }) {
  return html`<span class="badge ${tone}" title=${title || null}>${icon ? html`<${Icon} name=${icon} />` :
    null}${children}</span>`;
}
