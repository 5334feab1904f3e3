// The trail: every entry with what is known about it, filters in the address, and verification.

import { html, useEffect } from "../vendor/preact.js";
import { useGet, usePages, whyNot } from "../api.js";
import { Button, Card, Choice, Empty, Page, Problem, Status, Table, Time, act, short } from "../parts.js";
import { ask, to } from "../router.js";
import { lastCheck, stateOf } from "../trail_check.js";
import VerdictCard from "./audit_verdict.js";

const FILTERS = ["type", "actor", "agent", "workflow", "session"];
const OUTCOMES = [["", "any outcome"], ["success", "success"], ["failure", "failure"], ["refused", "refused"],
  ["unknown", "unknown"]];
const ORDERS = [["", "newest first"], ["oldest", "oldest first"]];

export default function Audit({ query }) {
  const why = whyNot("audit:read");
  if (why) return html`<${Page} title="Audit trail"><${Card} label="Audit trail"><${Empty}
    title="The trail is not shown" text=${why} command="holdfast token create NAME --role auditor" /></${Card}>
    </${Page}>`;
  return html`<${Trail} query=${query} />`;
}

function Trail({ query }) {
  const head = useGet("/audit/head", { live: true });
  const chosen = askedFor(query);
  const pages = usePages("/audit/entries", { query: chosen, limit: 100 });
  // What was verified may be more than what was listed before.
  useEffect(() => { if (lastCheck.value) head.reload(); }, [lastCheck.value]);
  const isWhole = Object.keys(chosen).every((name) => name === "order");
  const rows = isWhole ? withGaps(pages.items) : pages.items;
  return html`<${Page} title="Audit trail"
    note="Everything that was done, by whom, with what outcome. Each entry is chained to the one before and a leaf of a Merkle tree."
    actions=${html`<${Button} icon="retry" onClick=${pages.reload}>Refresh</${Button}>
      <${Button} icon="download" scope="audit:export" onClick=${() => act("export", {
        session: query.session })}>Export</${Button}>
      <${Button} onClick=${() => print()}>Print</${Button}>`}>
    <${VerdictCard} head=${head.data} />
    <${Problem} problem=${head.problem} retry=${head.reload} />
    <${Card} title="Entries" isFlush>
      <${Filters} query=${query} />
      <${Problem} problem=${pages.problem} retry=${pages.reload} />
      ${pages.problem && !rows.length ? null : html`<${Table} label="Entries of the audit trail"
        columns=${columns()} rows=${rows} keyOf=${(row) => row.index} href=${(row) => to.entry(row.index)}
        hasMore=${pages.hasMore} more=${pages.more} isLoading=${pages.isLoading} rowClass=${(row) =>
          `check-${stateOf(row)}`}
        empty=${html`<${Nothing} isFiltered=${!isWhole} hasMore=${pages.hasMore} more=${pages.more} />`} />`}
    </${Card}></${Page}>`;
}

function Nothing({ isFiltered, hasMore, more }) {
  if (!isFiltered) return html`<${Empty} title="The trail is empty"
    text="Whatever is done with the store is told here." command="holdfast demo" />`;
  return html`<${Empty} title="No entry is like that" text=${hasMore
    ? "Among those that were looked at; there are older ones." : "Change or clear the filters."}>
    ${hasMore ? html`<${Button} onClick=${more}>Look further</${Button}>` : null}</${Empty}>`;
}

/** What the address asks for, as the server wants it. */
function askedFor(query) {
  const asked = {};
  for (const name of [...FILTERS, "outcome", "order"]) if (query[name]) asked[name] = query[name];
  for (const name of ["since", "until"]) {
    const moment = query[name] ? new Date(query[name]) : null;
    if (moment && !Number.isNaN(moment.getTime())) asked[name] = moment.toISOString();
  }
  return asked;
}

/** Put a row where an entry should be and is not. */
function withGaps(items) {
  const rows = [];
  for (const [at, item] of items.entries()) {
    const before = items[at - 1];
    const step = before && item.index < before.index ? -1 : 1;
    for (let index = before ? before.index + step : item.index; index !== item.index &&
      rows.length < 5000; index += step) {
      rows.push({ index, isMissing: true });
    }
    rows.push(item);
  }
  return rows;
}

function columns() {
  // Read here, so that the list is drawn anew after a verification.
  const by = lastCheck.value?.by;
  const told = by === "browser" ? "Checked in this browser" : by === "server" ? "Checked by the server"
    : "Not checked on this page yet";
  return [
    { key: "check", label: "Check", width: "120px", title: told, render: (row) => html`<${Status}
      value=${stateOf(row)} title=${titleOf(row)} />` },
    { key: "index", label: "Index", align: "right", width: "72px", title: "Place in the log, from 0",
      render: (row) => html`<a class="num" href=${to.entry(row.index)}>${row.index}</a>` },
    { key: "time", label: "When", width: "104px", render: (row) => (row.isMissing ? "" : html`<span
      class="on-screen"><${Time} at=${row.time} /></span><span class="on-paper">${row.time}</span>`) },
    { key: "type", label: "What", render: (row) => (row.isMissing ? "an entry is not there" : row.problem
      ? short(row.problem, 60) : html`<code>${row.type}</code>`) },
    { key: "actor", label: "Who", render: (row) => short(row.actor ?? row.agent ?? "", 24) },
    { key: "workflow_id", label: "Run", isWide: true, render: (row) => (row.workflow_id ? html`<a
      href=${to.run(row.workflow_id)}>${short(row.workflow_id, 24)}</a>` : "") },
    { key: "outcome", label: "Outcome", render: (row) => (row.isMissing || row.problem ? "" : html`<${Status}
      value=${row.outcome} />`) },
    { key: "facts", label: "Facts", isWide: true, render: (row) => html`<span class="facts-line"
      title=${factsText(row.facts)}>${short(factsText(row.facts), 60)}</span>` },
  ];
}

function titleOf(row) {
  if (row.problem) return row.problem;
  const state = stateOf(row);
  if (state === "verified") return "Its hash, its place in the chain and in the signed tree are right.";
  if (state === "unanchored") return "No signed head covers it yet, or that was not checked.";
  if (state === "unchecked") return "Not checked on this page yet.";
  return "";
}

const factsText = (facts) => Object.entries(facts ?? {}).map(([name, fact]) => `${name}=${fact}`).join(" ");

function Filters({ query }) {
  const input = (name, label, more = {}) => html`<label class="choice"><span>${label}</span>
    <input value=${query[name] ?? ""} name=${name} spellcheck=${false} autocomplete="off" ...${more}
      onChange=${(event) => ask({ [name]: event.currentTarget.value.trim() })} /></label>`;
  const isFiltered = [...FILTERS, "outcome", "since", "until", "order"].some((name) => query[name]);
  return html`<form class="filterbar" aria-label="Filters" onSubmit=${(event) => event.preventDefault()}>
    ${input("type", "Type", { placeholder: "CHECKPOINT_CREATED" })} ${input("actor",
      "Actor")} ${input("workflow", "Run")} ${input("session", "Session")}
    <${Choice} label="Outcome" value=${query.outcome} options=${OUTCOMES} onChange=${(outcome) => ask({
      outcome })} />
    ${input("since", "Since", { type: "datetime-local" })} ${input("until", "Until", {
      type: "datetime-local" })}
    <${Choice} label="Order" value=${query.order} options=${ORDERS} onChange=${(order) => ask({ order })} />
    ${isFiltered ? html`<${Button} kind="quiet" onClick=${() => ask(Object.fromEntries([...FILTERS, "outcome",
      "since", "until", "order"].map((name) => [name, ""])))}>Clear</${Button}>` : null}
  </form>`;
}
