// One box for everything: runs, checkpoints, hashes, agents, labels, errors, entries. Views can be kept.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { useGet } from "../api.js";
import { useKeys } from "../keys.js";
import { Badge, Button, Card, Empty, Field, Loaded, Page, Time, toast } from "../parts.js";
import { ask, go, to } from "../router.js";

const KINDS = [
  ["run", "Runs", "runs"], ["checkpoint", "Checkpoints", "dot"], ["error", "Errors", "cross"], ["agent",
    "Agents", "play"],
  ["label", "Labels", "pin"], ["trail", "Audit entries", "audit"],
];
const VIEWS = "holdfast.views";
const VIEWS_MAX = 50;

const HREFS = {
  run: ({ id }) => to.run(id),
  error: ({ id }) => to.run(id),
  checkpoint: ({ id }) => to.checkpoint(id),
  agent: ({ id }) => to.runs({ agent: id }),
  label: ({ id }) => to.runs({ label: id }),
  trail: ({ id }) => to.entry(id),
};

export default function Search({ query }) {
  const text = (query.q ?? "").trim();
  const hits = useGet("/search", { query: { q: text, limit: 100 }, when: Boolean(text) });
  return html`<${Page} title=${text ? `Search: ${text}` : "Search"}
    note="By name, the beginning of a UUID or a checksum, an agent, a label, words of an error, the id of an audit entry or of a request.">
    <${Box} text=${text} />
    ${text ? html`<${Loaded} of=${hits} lines=${8}>${(found) => html`<${Hits} items=${found.items} text=${text}
      kind=${query.kind} />`}</${Loaded}>` : null}
    <${Views} current=${text ? location.hash : ""} />
  </${Page}>`;
}

function Box({ text }) {
  const input = useRef(null);
  const submit = (event) => {
    event.preventDefault();
    ask({ q: input.current.value.trim(), kind: "" });
  };
  useEffect(() => {
    if (!text) input.current?.focus();
  }, []);
  return html`<form class="row" role="search" onSubmit=${submit}><input class="grow" ref=${input} type="search"
    name="search" aria-label="What to look for" value=${text} spellcheck=${false} autocomplete="off" />
    <${Button} kind="primary" icon="search" type="submit">Search</${Button}></form>`;
}

function Hits({ items, text, kind: only }) {
  const [cursor, setCursor] = useState(-1);
  const groups = KINDS.map(([kind, label, icon]) => ({ kind, label, icon, items: items.filter((hit) =>
    hit.kind === kind) })).filter((group) => group.items.length);
  const shown = only ? groups.filter((group) => group.kind === only) : groups;
  const flat = shown.flatMap((group) => group.items);
  const move = (by) => {
    if (!flat.length) return false;
    const at = Math.max(0, Math.min(flat.length - 1, cursor + by));
    setCursor(at);
    document.querySelectorAll(".hits a")[at]?.scrollIntoView({ block: "nearest" });
    return true;
  };
  useKeys({ j: () => move(1), k: () => move(-1), Enter: (event) => (cursor < 0 ||
    event.target.closest?.("a, button") ? false : go(hrefOf(flat[cursor]))) });
  if (!items.length) return html`<${Empty} title="Nothing was found"
    text="Look for a part of a name, or paste a whole id or hash." command="holdfast list" />`;
  return html`<div class="chips" role="group" aria-label="Kinds">${groups.map((group) => html`<button
    type="button" class="chip" aria-pressed=${only === group.kind ? "true" : "false"}
      onClick=${() => ask({ kind: only === group.kind ? "" : group.kind })}>${group.label} <span class="num">
        ${group.items.length}</span></button>`)}</div>
    ${shown.map((group) => html`<${Card} title=${group.label} isFlush><ul class="hits">
      ${group.items.map((hit) => html`<li><a href=${hrefOf(hit)} class=${flat[cursor] === hit ? "cursor" : ""}>
      <strong><${Marked} text=${hit.title} wanted=${text} /></strong><${Badge} tone="quiet" icon=${group.icon}>
        ${group.kind}</${Badge}><small><${Timed} text=${hit.detail} /></small></a></li>`)}</ul></${Card}>`)}`;
}

const hrefOf = (hit) => (HREFS[hit.kind] ?? (() => to.search(hit.id)))(hit);

/** A text with its times as they are told everywhere else. */
function Timed({ text }) {
  return String(text ?? "").split(/(\d{4}-\d\d-\d\dT[\d:.]+Z)/).map((part, at) => (at % 2
    ? html`<${Time} at=${part} />` : part));
}

/** A text with what was looked for marked in it. */
function Marked({ text, wanted }) {
  const at = text.toLowerCase().indexOf(wanted.toLowerCase());
  if (at < 0) return html`<span>${text}</span>`;
  return html`<span>${text.slice(0, at)}<mark>${text.slice(at, at + wanted.length)}</mark>
    ${text.slice(at + wanted.length)}</span>`;
}

function readViews() {
  try {
    const views = JSON.parse(localStorage.getItem(VIEWS)) ?? [];
    return views.filter((view) => typeof view.name === "string" && isAddress(view.href));
  } catch {
    return [];
  }
}

const isAddress = (href) => typeof href === "string" && href.startsWith("#/");

function Views({ current }) {
  const [views, setViews] = useState(readViews());
  const [name, setName] = useState("");
  const [href, setHref] = useState(current);
  useEffect(() => setHref(current), [current]);
  const keep = (changed) => {
    localStorage.setItem(VIEWS, JSON.stringify(changed));
    setViews(changed);
  };
  const save = (event) => {
    event.preventDefault();
    const address = href.trim().replace(/^.*?#/, "#");
    if (!name.trim() || !isAddress(address)) {
      toast("A view has a name, and an address of this page", "bad");
      return;
    }
    keep([{ name: name.trim(), href: address }, ...views.filter((view) => view.name !== name.trim())].slice(0,
      VIEWS_MAX));
    setName("");
    toast("Kept in this browser");
  };
  return html`<${Card} title="Kept views"><div class="stack">
    ${views.length ? html`<ul class="kinds views">${views.map((view) => html`<li><a href=${view.href}>
      ${view.name}</a><${Button} kind="quiet" icon="cross" aria-label=${`Forget ${view.name}`} onClick=${() =>
      keep(views.filter((other) => other !== view))}>Forget</${Button}></li>`)}</ul>`
    : html`<p class="muted">Every filter is in the address. Keep those that you come back to: they stay in this browser.</p>`}
    <form class="diff-bar" onSubmit=${save}><${Field} label="Name"><input name="view-name" value=${name}
      onInput=${(event) => setName(event.currentTarget.value)} /></${Field}>
      <${Field} label="Address"><input name="view-address" value=${href} placeholder="#/runs?status=failed"
        spellcheck=${false} onInput=${(event) => setHref(event.currentTarget.value)} /></${Field}>
      <${Button} type="submit" icon="pin">Keep</${Button}></form></div></${Card}>`;
}
