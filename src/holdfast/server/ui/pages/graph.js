// The steps of a run as a graph, and the family of forks that the run belongs to.

import { html, useEffect, useMemo, useState } from "../vendor/preact.js";
import { path, useGet } from "../api.js";
import { Behind, Card, Empty, Facts, Loaded, Problem, Skeleton, Status, Table, short } from "../parts.js";
import { ask, go, to } from "../router.js";
import { Canvas } from "./graph_canvas.js";

const NODE = { width: 188, height: 46 };

export default function Graph({ id, query }) {
  const graph = useGet(path`/runs/${id}/graph`, { live: (event) => event.workflow_id === id });
  return html`<${Loaded} of=${graph} lines=${8}>${(data) => html`<div class="stack">
    ${data.is_cut ? html`<p class="muted">There are more steps than can be drawn.</p>` : null}
    ${data.nodes.length ? html`<${Steps} id=${id} data=${data} query=${query} />`
      : html`<${Empty} title="This run has no steps"
      text="Steps appear for a workflow that the executor runs, or that declares its plan." />`}
    ${data.lineage.nodes.length > 1 ? html`<${Lineage} id=${id} data=${data.lineage} />` :
      null}</div>`}</${Loaded}>`;
}

let worker = null;
let asked = 0;
const waiting = new Map();

/** Let the worker lay a graph out; there is one for the whole page. */
function layOut(nodes, edges, done) {
  if (!worker) {
    worker = new Worker(new URL("../layout_worker.js", import.meta.url), { type: "module" });
    worker.onmessage = ({ data }) => {
      waiting.get(data.number)?.(data);
      waiting.delete(data.number);
    };
  }
  const number = ++asked;
  waiting.set(number, done);
  worker.postMessage({ number, nodes: nodes.map((node) => ({ id: node.id, ...NODE })), edges:
    edges.map(({ source, target }) => ({ source, target })) });
  return () => waiting.delete(number);
}

/** A layout of a graph; null until there is one. */
function useLayout(nodes, edges) {
  const [laid, setLaid] = useState(null);
  // How it is laid out depends on names only: a new status moves nothing.
  const shape = useMemo(() => JSON.stringify([nodes.map((node) => node.id),
    edges.map((edge) => [edge.source, edge.target])]), [nodes, edges]);
  useEffect(() => (nodes.length ? layOut(nodes, edges, (data) => setLaid({ ...data, shape })) : undefined),
    [shape]);
  return laid?.shape === shape ? laid : null;
}

function counted(nodes) {
  const found = new Map();
  for (const node of nodes) found.set(node.status, (found.get(node.status) || 0) + 1);
  return [...found];
}

function Steps({ id, data, query }) {
  const hidden = useMemo(() => new Set((query.hide || "").split(",").filter(Boolean)), [query.hide]);
  const nodes = useMemo(() => data.nodes.filter((node) => !hidden.has(node.status)), [data, hidden]);
  const edges = useMemo(() => {
    const shown = new Set(nodes.map((node) => node.id));
    return data.edges.filter((edge) => shown.has(edge.source) && shown.has(edge.target));
  }, [data, nodes]);
  const [selected, setSelected] = useState(null);
  const node = nodes.find((one) => one.id === selected);
  const toggle = (status) => {
    const next = new Set(hidden);
    if (!next.delete(status)) next.add(status);
    ask({ hide: [...next].join(",") });
  };
  return html`<${Card} title="Steps"
    actions=${html`<div class="chips" role="group"
      aria-label="Statuses that are shown">${counted(data.nodes).map(([status, count]) =>
        html`<button type="button" class="chip"
      aria-pressed=${hidden.has(status) ? "false" : "true"} onClick=${() => toggle(status)}>${status} <span
        class="num">${count}</span></button>`)}</div>`}>
    <div class="stack"><${Laid} name="steps" label=${`Graph of ${nodes.length} steps`} nodes=${nodes}
      edges=${edges} selected=${selected} onSelect=${setSelected} onOpen=${setSelected} />
    ${node ? html`<${Step} id=${id} node=${node} edges=${data.edges} />` :
      html`<p class="muted">Choose a step to see more of it. Dashed: planned, not begun. The colour at the
        left is the stage.</p>`}
    <${Behind}><${NodeTable} label="Steps" nodes=${data.nodes} edges=${data.edges}
      /></${Behind}></div></${Card}>`;
}

function Lineage({ id, data }) {
  return html`<${Card} title="Family of forks"><div class="stack">
    <${Laid} name="lineage" isLow label=${`Family of ${data.nodes.length} runs`} nodes=${data.nodes}
      edges=${data.edges} selected=${id} onSelect=${() => {}} onOpen=${(one) => go(to.run(one))} />
    <${Behind}><${NodeTable} label="Family of forks" nodes=${data.nodes} edges=${data.edges}
      hrefOf=${(node) => to.run(node.id)} /></${Behind}></div></${Card}>`;
}

function Laid({ nodes, edges, ...rest }) {
  const laid = useLayout(nodes, edges);
  if (!nodes.length) return html`<${Empty} title="All steps are hidden" text="Show a status again." />`;
  if (!laid) return html`<${Skeleton} lines=${6} />`;
  if (laid.fault) return html`<${Problem}
    problem=${{ message: "This graph cannot be laid out.", hint: "The table below has all of it.", code:
      laid.fault.slice(0, 80) }} />`;
  return html`<${Canvas} laid=${laid} nodes=${nodes} edges=${edges} size=${NODE} ...${rest} />`;
}

function Step({ node, edges }) {
  const before = edges.filter((edge) => edge.target === node.id).map((edge) => edge.source);
  const after = edges.filter((edge) => edge.source === node.id).map((edge) => edge.target);
  const names = (found) => short(found.slice(0, 12).join(", "), 200) +
    (found.length > 12 ? ` and ${found.length - 12} more` : "");
  return html`<div data-testid="step"><${Facts}
    items=${[["Step", short(node.label, 200)], ["Status", html`<${Status} value=${node.status} />`],
      ["Kind", node.kind], ["Stage", short(String(node.branch ?? ""), 80)],
    ["Comes after", names(before)], ["Comes before", names(after)]]} /></div>`;
}

function NodeTable({ label, nodes, edges, hrefOf }) {
  const before = useMemo(() => {
    const found = new Map();
    for (const edge of edges) found.set(edge.target,
      [...(found.get(edge.target) || []), edge.label ? `${edge.source} (${edge.label})` : edge.source]);
    return found;
  }, [edges]);
  const columns = [
    { key: "label", label: "Name", render: (node) =>
      (hrefOf ? html`<a href=${hrefOf(node)}>${short(node.label, 60)}</a>` : short(node.label, 60)) },
    { key: "status", label: "Status", render: (node) => html`<${Status} value=${node.status} />` },
    { key: "kind", label: "Kind" },
    { key: "branch", label: "Stage", isWide: true, render: (node) => short(String(node.branch ?? "–"), 40) },
    { key: "after", label: "After", isWide: true, render: (node) =>
      short((before.get(node.id) || []).join(", "), 80) },
  ];
  return html`<${Table} label=${label} columns=${columns} rows=${nodes} keyOf=${(node) => node.id}
    height="480px" />`;
}
