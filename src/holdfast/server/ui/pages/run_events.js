// The events of a run, in order.

import { html, useEffect, useState } from "../vendor/preact.js";
import { path, usePages } from "../api.js";
import { Card, Choice, Command, Dialog, Empty, Facts, Long, Problem, Table, Time, countText, quoted, short,
  showDialog } from "../parts.js";
import { ask, to } from "../router.js";

const PREVIEW_CHARS = 110;
const PAGE = 250;
// So many pages are fetched to come to an event that somebody followed a link to.
const PAGES_MAX = 24;

function shown(value, max = PREVIEW_CHARS) {
  if (value === null || value === undefined) return "";
  const text = JSON.stringify(value);
  return text === "{}" ? "" : short(text, max);
}

function Event({ event, id, onClose }) {
  return html`<${Dialog} title=${`Event ${event.seq}`} onClose=${onClose} isWide><${Facts} items=${[
      ["Type", html`<code>${event.type}</code>`], ["Time", html`<${Time} at=${event.time} isLong />`],
        ["Agent", event.agent], ["Step", event.step],
      ["Checkpoint", event.cp_seq ? html`<a href=${to.checkpoint(`${id}@${event.cp_seq}`)}
        onClick=${onClose}>@${event.cp_seq}</a>` : null], ["Cost", shown(event.cost)]]} />
    ${event.is_erased ? html`<p class="muted">What it held was erased.</p>` :
      html`<pre tabindex="0"><${Long} text=${JSON.stringify(event.data, null, 2)} max=${8000} /></pre>`}
    <${Command} text=${`holdfast events ${quoted(id)}`} /></${Dialog}>`;
}

const COLUMNS = [
  { key: "seq", label: "#", align: "right", width: "64px", render: (event) =>
    html`<span class="num">${event.seq}</span>` },
  { key: "time", label: "Time", render: (event) => html`<${Time} at=${event.time} />` },
  { key: "type", label: "Type", render: (event) => html`<code>${short(event.type, 40)}</code>` },
  { key: "agent", label: "Agent", isWide: true, render: (event) => short(event.agent || "–", 28) },
  { key: "step", label: "Step", render: (event) => short(event.step || "–", 28) },
  { key: "data", label: "What", isWide: true, isFill: true, render: (event) =>
    html`<code class="muted">${event.is_erased ? "erased" : shown(event.data)}</code>` },
];

/** Go on fetching until an event is there that somebody wants to see. */
function useFollow(pages, wanted) {
  const [count, setCount] = useState(0);
  const isThere = !wanted || pages.items.some((event) => event.seq === wanted);
  useEffect(() => setCount(0), [wanted]);
  useEffect(() => {
    if (isThere || pages.isLoading || !pages.hasMore || count >= PAGES_MAX) return;
    setCount(count + 1);
    pages.more();
  }, [isThere, pages.isLoading, pages.items.length]);
  return isThere;
}

export default function RunEvents({ id, detail, query }) {
  const wanted = Number(query.after) || null;
  const isNearEnd = wanted && detail && wanted > detail.events / 2;
  const order = query.order || (isNearEnd ? "newest" : "oldest");
  const pages = usePages(path`/runs/${id}/events`,
    { query: { type: query.type, order }, limit: PAGE, live: (event) => event.workflow_id === id });
  useFollow(pages, wanted);
  const types = [...new Set([query.type, ...pages.items.map((event) => event.type)].filter(Boolean))].sort();
  return html`<div class="stack">
    <div class="filters"><${Choice} label="Order" value=${order}
      options=${[["oldest", "oldest first"], ["newest", "newest first"]]} onChange=${(value) =>
        ask({ order: value, after: "" })} />
      <${Choice} label="Type" value=${query.type || ""}
        options=${[["", "all"], ...types.map((type) => [type, type])]} onChange=${(type) =>
          ask({ type, after: "" })} />
      <span class="muted num" role="status">${countText(pages.items.length)} ${pages.items.length === 1 ? "event"
        : "events"}${pages.hasMore ? " so far" : ""}</span></div>
    <${Problem} problem=${pages.problem} retry=${pages.reload} />
    <${Card} isFlush><${Table} label="Events" columns=${COLUMNS} rows=${pages.items} keyOf=${(event) =>
      event.seq} onOpen=${(event) => showDialog(Event, { event, id })}
      selected=${wanted || undefined} hasMore=${pages.hasMore} more=${pages.more} isLoading=${pages.isLoading
        && !pages.items.length}
      empty=${html`<${Empty} title="No events" text="A run that only saves checkpoints has none." />`}
        /></${Card}>
    <${Command} text=${`holdfast events ${quoted(id)}`} /></div>`;
}
