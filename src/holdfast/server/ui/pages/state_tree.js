// The state of a checkpoint as a tree that is opened node by node: only what is looked at is loaded.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { get, path } from "../api.js";
import { Button, Copy, Icon, Long, Problem, Skeleton, act, bytesText, countText, toast } from "../parts.js";
import { BIG_BYTES, Value, bytesOf, copyText, hasValue, isBranch, isSealed, valueText } from "../state_node.js";

const PORTION = 100;

const ask = (checkpoint, pointer, after) => get(path`/checkpoints/${checkpoint}/state`, { query: {
  path: pointer, after: after || "", limit: PORTION } });
const askWhole = (checkpoint, pointer) => get(path`/checkpoints/${checkpoint}/state`, { query: { path: pointer,
  form: "value" } });

/** Nodes by their pointers: {node, children, next, isOpen, isLoading, problem}. */
function useNodes(checkpoint) {
  const [nodes, setNodes] = useState(new Map());
  const change = (pointer, changes) => setNodes((old) => new Map(old).set(pointer, { ...old.get(pointer),
    ...changes }));
  const take = (pointer, found, isMore) => setNodes((old) => {
    const nodes = new Map(old);
    const before = isMore ? old.get(pointer).children ?? [] : [];
    const children = [...before, ...found.children.map((child) => child.pointer)];
    for (const child of found.children) nodes.set(child.pointer, { ...nodes.get(child.pointer), node: child });
    const { children: _, next, ...node } = found;
    return nodes.set(pointer, { ...old.get(pointer), node, children, next, isOpen: true, isLoading: false,
      problem: null });
  });
  const load = async (pointer, after = 0) => {
    change(pointer, { isLoading: true, problem: null });
    try {
      take(pointer, await ask(checkpoint, pointer, after), after > 0);
    } catch (problem) {
      change(pointer, { isLoading: false, problem });
    }
  };
  const loadValue = async (pointer) => {
    change(pointer, { isLoading: true, problem: null });
    try {
      const value = await askWhole(checkpoint, pointer);
      setNodes((old) => new Map(old).set(pointer, { ...old.get(pointer), node: { ...old.get(pointer).node,
        value }, isLoading: false }));
    } catch (problem) {
      change(pointer, { isLoading: false, problem });
    }
  };
  const toggle = (pointer) => {
    const one = nodes.get(pointer);
    if (one.isOpen) change(pointer, { isOpen: false });
    else if (one.children) change(pointer, { isOpen: true });
    else load(pointer);
  };
  useEffect(() => {
    setNodes(new Map());
    load("");
  }, [checkpoint]);
  return { nodes, load, loadValue, toggle };
}

/** The rows that are to be seen: {pointer, level, kind: "node" | "more", ...}. */
function visible(nodes) {
  const rows = [];
  const walk = (pointer, level) => {
    const one = nodes.get(pointer);
    for (const [at, child] of (one.children ?? []).entries()) {
      rows.push({ pointer: child, level, parent: pointer, at: at + 1, of: one.node.count ??
        one.children.length });
      if (nodes.get(child).isOpen) walk(child, level + 1);
    }
    if (one.next !== null && one.next !== undefined) rows.push({ pointer: `${pointer}\u0000more`, level,
      parent: pointer, isMore: true, next: one.next });
  };
  if (nodes.get("")?.children) walk("", 1);
  return rows;
}

export default function StateTree({ checkpoint, focus, onFocus }) {
  const { nodes, load, loadValue, toggle } = useNodes(checkpoint);
  const rows = useMemo(() => visible(nodes), [nodes]);
  const [cursor, setCursor] = useState(focus ?? "");
  const [search, setSearch] = useState("");
  const box = useRef(null);
  const found = useMemo(() => matches(rows, nodes, search), [rows, nodes, search]);
  useEffect(() => reveal(nodes, focus, load), [focus, nodes.size]);
  const root = nodes.get("");
  if (!root?.children) return root?.problem ? html`<${Problem} problem=${root.problem} retry=${() => load("")}
    />` : html`<${Skeleton} lines=${8} />`;
  const current = rows.some((row) => row.pointer === cursor) ? cursor : rows[0]?.pointer;
  const moveTo = (pointer) => {
    setCursor(pointer);
    if (!pointer.includes("\u0000")) onFocus?.(pointer);
    requestAnimationFrame(() => [...(box.current?.querySelectorAll("[role=treeitem]") ?? [])].find((item) =>
      item.dataset.pointer === pointer)?.focus());
  };
  const open = (row) => (row.isMore ? load(row.parent, row.next) : isBranch(nodes.get(row.pointer).node)
    ? toggle(row.pointer) : undefined);
  const press = (event) => onKey(event, { rows, nodes, current, moveTo, open, toggle });
  const chosen = nodes.get(current);
  return html`<div class="state">
    <${Search} text=${search} setText=${setSearch} found=${found} current=${current} moveTo=${moveTo} />
    <ul class="tree" role="tree" aria-label="State" ref=${box} onKeyDown=${press} data-testid="state-tree">
      ${rows.map((row) => html`<${Row} key=${row.pointer} row=${row} one=${nodes.get(row.pointer)}
        isCurrent=${row.pointer === current} isFound=${found.has(row.pointer)}
        onClick=${() => { moveTo(row.pointer); open(row); }} />`)}
      ${rows.length ? null : html`<li class="muted" role="none">The state is empty.</li>`}
    </ul>
    ${chosen?.node ? html`<${Chosen} one=${chosen} checkpoint=${checkpoint} loadValue=${loadValue} />` : null}</div>`;
}

/** Open what leads to a place that the address names. */
function reveal(nodes, pointer, load) {
  if (!pointer) return;
  const steps = pointer.split("/");
  for (let depth = 1; depth < steps.length; depth++) {
    const above = steps.slice(0, depth).join("/");
    const one = nodes.get(above);
    if (!one || one.isLoading) return;
    if (!one.children && isBranch(one.node)) {
      load(above);
      return;
    }
  }
}

function matches(rows, nodes, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return new Set();
  const fits = ({ pointer, isMore }) => !isMore &&
    (keyOf(nodes.get(pointer).node).toLowerCase().includes(wanted) ||
    (!isBranch(nodes.get(pointer).node) && valueText(nodes.get(pointer).node).toLowerCase().includes(wanted)));
  return new Set(rows.filter(fits).map((row) => row.pointer));
}

const keyOf = (node) => String(node.key ?? node.pointer.slice(node.pointer.lastIndexOf("/") + 1));

function Search({ text, setText, found, current, moveTo }) {
  const all = [...found];
  const at = all.indexOf(current);
  const step = (by) => all.length && moveTo(all[(at + by + all.length) % all.length]);
  return html`<div class="tree-search"><label class="choice"><span>Find in what is loaded</span>
    <input type="search" value=${text} spellcheck=${false} onInput=${(event) =>
      setText(event.currentTarget.value)}
      onKeyDown=${(event) => { if (event.key === "Enter") { event.preventDefault(); step(event.shiftKey ? -1
        : 1); } }} /></label>
    ${text ? html`<span class="muted num" role="status">${countText(all.length)} found</span>
      <${Button} kind="quiet" icon="down" disabled=${!all.length} onClick=${() => step(1)}>Next</${Button}>`
        : null}</div>`;
}

function Row({ row, one, isCurrent, isFound, onClick }) {
  const indent = { paddingInlineStart: `${(row.level - 1) * 18 + 4}px` };
  const shared = { role: "treeitem", "aria-level": row.level, tabindex: isCurrent ? 0 : -1,
    "data-pointer": row.pointer, style: indent, onClick };
  if (row.isMore) return html`<li ...${shared} class="tree-row more" aria-selected=${isCurrent ? "true"
    : "false"}><span class="twist"></span>Show more, after ${countText(row.next)}</li>`;
  const canOpen = isBranch(one.node);
  return html`<li ...${shared} class="tree-row ${isFound ? "found" : ""}" aria-expanded=${canOpen
    ? String(Boolean(one.isOpen)) : null} aria-selected=${isCurrent ? "true" : "false"} aria-setsize=${row.of}
    aria-posinset=${row.at}>
    <span class="twist">${canOpen ? html`<${Icon} name=${one.isLoading ? "more" : one.isOpen ? "down"
      : "right"} />` : null}</span>
    <span class="key">${keyOf(one.node)}</span><${Value} node=${one.node} />
    ${one.problem ? html`<span class="wrong">${one.problem.message}</span>` : null}</li>`;
}

/** The place that is chosen: its pointer, its value as a whole, and what can be copied. */
function Chosen({ one, checkpoint, loadValue }) {
  const { node } = one;
  const bytes = node.kind === "bytes" && hasValue(node) ? bytesOf(node.value) : null;
  const isBig = node.size_bytes >= BIG_BYTES;
  return html`<div class="chosen" aria-live="polite"><p class="chosen-head"><code>${node.pointer || "/"}</code>
    <${Copy} text=${node.pointer} label="Copy the pointer" />
      <span class="muted">${node.kind}${node.count === null || node.count === undefined ? ""
        : `, ${countText(node.count)}`}, ${bytesText(node.size_bytes)}</span>
      ${hasValue(node) ? html`<${Copy} text=${copyText(node)} label="Copy the value" />` : null}</p>
    ${node.is_masked ? html`<p class="masked-note">${isSealed(node) ? "This is sealed with a person's key."
      : isBranch(node) ? "Some of this is masked." : "What was here was hidden before it was stored."}
      <${Button} icon="lock" scope="state:reveal" onClick=${() => act("reveal", { checkpoint,
        pointer: node.pointer })} data-testid="reveal">Reveal</${Button}></p>` : null}
    ${hasValue(node) ? null : html`<p>${isBig ? "This is large, and not loaded."
      : "Only its beginning is loaded."} <${Button} isBusy=${one.isLoading} onClick=${() =>
      loadValue(node.pointer)} data-testid="load-value">Load ${bytesText(node.size_bytes)}</${Button}></p>`}
    <${Problem} problem=${one.problem} />
    ${bytes ? html`<p class="muted">Hex</p><pre class="raw">${bytes.hex}</pre><p class="muted">Base64</p><pre
      class="raw"><${Long} text=${bytes.base64} max=${500} /></pre>`
    : hasValue(node) && !isSealed(node) && !(isBranch(node) && node.size_bytes < 40) ? html`<pre class="raw" tabindex="0"><${Long}
      text=${copyText(node)} max=${4000} /></pre>` : null}</div>`;
}

const COPIES = {
  c: ["value", (one) => copyText(one.node)],
  y: ["pointer", (one) => one.node.pointer],
};

function onKey(event, { rows, nodes, current, moveTo, open, toggle }) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const at = rows.findIndex((row) => row.pointer === current);
  const row = rows[at];
  if (!row) return;
  const one = nodes.get(row.pointer);
  const canOpen = !row.isMore && isBranch(one.node);
  const keys = {
    ArrowDown: () => rows[at + 1] && moveTo(rows[at + 1].pointer),
    ArrowUp: () => rows[at - 1] && moveTo(rows[at - 1].pointer),
    Home: () => moveTo(rows[0].pointer),
    End: () => moveTo(rows[rows.length - 1].pointer),
    ArrowRight: () => (canOpen && !one.isOpen ? toggle(row.pointer) : canOpen &&
      rows[at + 1]?.parent === row.pointer && moveTo(rows[at + 1].pointer)),
    ArrowLeft: () => (canOpen && one.isOpen ? toggle(row.pointer) : row.parent && moveTo(row.parent)),
    Enter: () => open(row),
    " ": () => open(row),
    "*": () => rows.filter((other) => other.parent === row.parent && !other.isMore &&
      isBranch(nodes.get(other.pointer).node) && !nodes.get(other.pointer).isOpen).slice(0,
      50).forEach((other) => toggle(other.pointer)),
  };
  if (COPIES[event.key] && one) {
    const [what, text] = COPIES[event.key];
    navigator.clipboard?.writeText(text(one)).then(() => toast(`Copied the ${what}`), () =>
      toast("This browser did not let it be copied", "bad"));
  } else if (keys[event.key]) {
    keys[event.key]();
  } else {
    return;
  }
  event.preventDefault();
}
