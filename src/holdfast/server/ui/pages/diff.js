// What is different between two checkpoints, as a list of changes of the structure.

import { html, useEffect, useState } from "../vendor/preact.js";
import { get, path, useGet, usePages } from "../api.js";
import { Badge, Button, Card, Choice, Command, Copy, Empty, Icon, Loaded, Long, Page, countText, quoted, short,
  toast } from "../parts.js";
import { ask, go, to } from "../router.js";

const KINDS = ["added", "removed", "changed", "moved"];
const TONES = { added: "ok", removed: "bad", changed: "warn", moved: "info" };
const ICONS = { added: "plus", removed: "minus", changed: "retry", moved: "right" };
const OPEN_CHARS = 2000;
const FOLDED_AFTER = 200;

const runOf = (checkpoint) => checkpoint.replace(/@[^@]*$/, "");

export default function Diff({ params: { from, until }, query }) {
  const view = query.view === "unified" ? "unified" : "split";
  const only = KINDS.includes(query.kind) ? query.kind : "";
  const diff = useGet(path`/checkpoints/${until}/diff`, { query: { base: from, ignore: query.ignore } });
  return html`<${Page} title="Difference" crumbs=${[["Runs", to.runs()], [short(runOf(until), 40),
    to.run(runOf(until), "checkpoints")]]}
    note=${html`From <a href=${to.checkpoint(from)}>${short(from, 48)}</a> to <a href=${to.checkpoint(until)}>
      ${short(until, 48)}</a>`}
    actions=${html`<${Button} icon="swap" onClick=${() => go(to.diff(until, from, query))}>Swap</${Button}>
      <${Button} icon="copy" onClick=${() => copyPatch(from, until, query.ignore)}
        data-testid="copy-patch">Copy as JSON Patch</${Button}>`}>
    <${Card} label="What is compared"><div class="stack"><${Pickers} from=${from} until=${until} query=${query}
      />
      <${Options} query=${query} view=${view} /></div></${Card}>
    <${Loaded} of=${diff} lines=${10}>${(found) => html`<${Changes} found=${found} view=${view} only=${only}
      />`}</${Loaded}>
    <${Command} text=${`holdfast diff ${quoted(from)} ${quoted(until)}`} /></${Page}>`;
}

async function copyPatch(from, until, ignore) {
  try {
    const patch = await get(path`/checkpoints/${until}/diff`, { query: { base: from, ignore, form: "patch" } });
    await navigator.clipboard.writeText(JSON.stringify(patch, null, 2));
    toast(`Copied ${countText(patch.length)} operations (RFC 6902)`);
  } catch (problem) {
    toast(problem.message, "bad");
  }
}

function Pickers({ from, until, query }) {
  return html`<div class="diff-bar"><${Picker} label="From" value=${from} onPick=${(id) => go(to.diff(id,
    until, query))} />
    <${Icon} name="right" /><${Picker} label="To" value=${until} onPick=${(id) => go(to.diff(from, id, query))}
      /></div>`;
}

/** Any checkpoint by its name, and those of the same run to choose from. */
function Picker({ label, value, onPick }) {
  const [text, setText] = useState(value);
  const list = `picks-${label}`;
  useEffect(() => setText(value), [value]);
  const near = usePages("/checkpoints", { query: { run: runOf(value) }, limit: 100 });
  const pick = (event) => {
    const chosen = event.currentTarget.value.trim();
    if (chosen && chosen !== value) onPick(chosen);
  };
  return html`<label class="choice picker"><span>${label}</span><input name=${label.toLowerCase()} list=${list}
    value=${text} spellcheck=${false} autocomplete="off"
      onInput=${(event) => setText(event.currentTarget.value)} onChange=${pick} onKeyDown=${(event) =>
        event.key === "Enter" && pick(event)} /></label>
    <datalist id=${list}>${near.items.map((row) => html`<option value=${row.id}>${row.type.replaceAll("_",
      " ")} ${row.agent_id ?? ""} ${row.label ?? ""}</option>`)}</datalist>`;
}

function Options({ query, view }) {
  return html`<div class="diff-bar"><${Choice} label="Show" value=${view} options=${[["split", "side by side"],
    ["unified", "one below the other"]]} onChange=${(value) => ask({ view: value === "split" ? "" : value })} />
    <label class="choice picker"><span>Leave out</span><input name="ignore" value=${query.ignore ?? ""}
      placeholder="/metrics,/updated_at" spellcheck=${false} autocomplete="off"
      title="JSON Pointers with commas between them"
      onChange=${(event) => ask({ ignore: event.currentTarget.value.trim() })} /></label></div>`;
}

function Changes({ found, view, only }) {
  const [shown, setShown] = useState(FOLDED_AFTER);
  const total = KINDS.reduce((sum, kind) => sum + found.counts[kind], 0);
  const changes = found.changes.filter((change) => !only || kindOf(change) === only);
  return html`<div class="diff-counts" data-testid="diff-counts">${KINDS.map((kind) => html`<button
    type="button" class="chip" aria-pressed=${only === kind ? "true" : "false"}
      onClick=${() => ask({ kind: only === kind ? "" : kind })}><${Icon} name=${ICONS[kind]} />
        ${countText(found.counts[kind])} ${kind}</button>`)}
      ${found.fields.length > 1 ? html`<span class="muted">in ${found.fields.slice(0, 8).map((one) =>
        one.field || "the whole").join(", ")}${found.fields.length > 8 ? ` and ${found.fields.length - 8} more`
        : ""}</span>` : null}</div>
    <${Card} label="Changes" isFlush>
      ${changes.length ? html`<ul class="changes" data-testid="changes">${changes.slice(0,
        shown).map((change) => html`<${Change} key=${`${change.kind} ${change.pointer} ${change.source ?? ""}`}
        change=${change} view=${view} />`)}</ul>`
    : html`<${Empty} title=${total ? "No change of that kind" : "Both states are the same"} text=${total
      ? "Choose another one above." : found.from === null ? "There is nothing before the first checkpoint."
      : "Apart from what was left out."} />`}
      ${changes.length > shown ? html`<p class="table-foot"><${Button} kind="quiet" onClick=${() =>
        setShown(shown + FOLDED_AFTER)}>Show more of ${countText(changes.length)}</${Button}></p>` : null}
      ${found.is_cut ? html`<p
        class="table-foot muted">Only the first ${countText(found.changes.length)} are listed; the counts are of all.</p>`
        : null}</${Card}>`;
}

const kindOf = (change) => (change.kind === "grew" ? "changed" : change.kind);

function Change({ change, view }) {
  const hasOld = change.old !== undefined;
  const hasNew = change.new !== undefined;
  const size = Math.max(textOf(change.old).length, textOf(change.new).length, change.text?.length ?? 0);
  const [isOpen, setOpen] = useState(size <= OPEN_CHARS);
  return html`<li class="change" data-kind=${change.kind}><div class="change-head"><${Badge}
    tone=${TONES[kindOf(change)]} icon=${ICONS[kindOf(change)]}>${kindOf(change)}</${Badge}>
      ${change.kind === "grew" ? html`<${Badge} tone="quiet">text grew</${Badge}>` : null}
      <code>${change.pointer || "/"}</code><${Copy} text=${change.pointer} label="Copy the pointer" />
      ${change.source ? html`<span class="muted">from <code>${change.source}</code></span>` : null}
      ${size > OPEN_CHARS ? html`<${Button} kind="quiet" onClick=${() => setOpen(!isOpen)}>${isOpen ? "Fold"
        : `Show ${countText(size)} characters`}</${Button}>` : null}</div>
    ${!isOpen ? null : change.kind === "moved" ? html`<${Side} kind="new" value=${change.new} has=${hasNew}
      change=${change} />` : change.text ? html`<${Lines} text=${change.text} />` : view === "split"
      ? html`<div class="sides"><${Side} kind="old" value=${change.old} has=${hasOld} change=${change} />
      <${Side} kind="new" value=${change.new} has=${hasNew} change=${change} /></div>`
    : html`<div class="unified">${change.kind !== "added" ? html`<${Side} kind="old" value=${change.old}
      has=${hasOld} change=${change} />` : null}${change.kind !== "removed" ? html`<${Side} kind="new"
      value=${change.new} has=${hasNew} change=${change} />` : null}</div>`}</li>`;
}

/** A value as people read it: what JSON has no word for is named by its tag. */
function textOf(value) {
  if (value === undefined) return "";
  if (value?.$hf && "v" in value) return `${value.$hf} ${typeof value.v === "string" ? value.v
    : JSON.stringify(value.v, null, 2)}`;
  return JSON.stringify(value, null, 2) ?? "";
}

function Side({ kind, value, has, change }) {
  const isThere = kind === "old" ? change.kind !== "added" : change.kind !== "removed";
  if (!isThere) return html`<div class="side none">${kind === "old" ? "was not there" : "is not there any more"}
    </div>`;
  if (!has) return html`<div class="side none">${change.kind === "grew" && kind === "old"
    ? "its beginning is as before" : `too large to be shown: ${short(change.preview, 200)}`}</div>`;
  return html`<div class="side ${kind}" tabindex="0"><${Long} text=${textOf(value)} max=${20_000} /></div>`;
}

/** A text that changed, line by line. */
function Lines({ text }) {
  const tone = (line) => (line.startsWith("@@") ? "place" : line.startsWith("+") ? "added"
    : line.startsWith("-") ? "removed" : "");
  const lines = text.replace(/\n$/, "").split("\n").filter((line) => !/^(?:\+\+\+|---) ?$/.test(line));
  return html`<div class="lines" tabindex="0" role="group" aria-label="Lines of the text">${lines.slice(0,
    2000).map((line) => html`<span class="line ${tone(line)}">${line || " "}</span>`)}</div>`;
}
