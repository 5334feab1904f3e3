// One run: how it stands, what can be done, and its timeline, graph, checkpoints, events and report.

import { html, useEffect, useMemo, useState } from "../vendor/preact.js";
import { path, prefetch, useGet, usePages } from "../api.js";
import { Badge, Bytes, Button, Card, Count, Empty, Facts, Loaded, Page, Problem, Skeleton, Span, Status,
  Table, Tabs, Time, act, quoted, short } from "../parts.js";
import { to } from "../router.js";

// The larger views are fetched when they are looked at.
const VIEWS = {
  timeline: () => import("./timeline.js"),
  graph: () => import("./graph.js"),
  events: () => import("./run_events.js"),
  report: () => import("./run_report.js"),
};

const CHECKPOINTS = [
  { key: "sequence", label: "#", width: "72px", render: (row) =>
    html`<a href=${to.checkpoint(row.id)} class="num">@${row.sequence}</a>` },
  { key: "created_at", label: "Taken", render: (row) => html`<${Time} at=${row.created_at} />` },
  { key: "type", label: "At", render: (row) => row.type.replaceAll("_", " ") },
  { key: "status", label: "Status", render: (row) => html`<${Status} value=${row.status} />` },
  { key: "agent_id", label: "Agent", isWide: true, render: (row) => short(row.agent_id || "–", 32) },
  { key: "stage_id", label: "Stage", isWide: true, render: (row) => short(row.stage_id || "–", 32) },
  { key: "label", label: "Label", isWide: true, render: (row) =>
    html`${row.pinned ? html`<${Badge} tone="info" icon="pin">pinned</${Badge}> ` : null}${row.pruned ?
      html`<${Badge} icon="trash">pruned</${Badge}> ` : null}${short(row.label || "", 40)}` },
  { key: "size_bytes", label: "State", align: "right", isWide: true, render: (row) =>
    html`<${Bytes} value=${row.size_bytes} />` },
  { key: "diff", label: html`<span class="sr">Difference</span>`, align: "right", render: (row) =>
    (row.parent ? html`<a href=${to.diff(row.parent, row.id)}
      aria-label=${`Difference of @${row.sequence} to its parent`}>diff</a>` : null) },
];

function Checkpoints({ id }) {
  const pages = usePages("/checkpoints",
    { query: { run: id }, limit: 200, live: (event) => event.workflow_id === id });
  return html`<${Problem} problem=${pages.problem} retry=${pages.reload} />
    <${Card} isFlush><${Table} label="Checkpoints, newest first" columns=${CHECKPOINTS} rows=${pages.items}
      keyOf=${(row) => row.id} href=${(row) => to.checkpoint(row.id)}
      hasMore=${pages.hasMore} more=${pages.more} isLoading=${pages.isLoading && !pages.items.length}
      empty=${html`<${Empty} title="No checkpoint is kept"
        text="They may have been pruned, or none was taken yet." command=${`holdfast list ${quoted(id)}`} />`}
          /></${Card}>`;
}

function View({ tab, id, detail, query }) {
  const [views, setViews] = useState({});
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    setProblem(null);
    if (!VIEWS[tab] || views[tab]) return;
    VIEWS[tab]().then((module) => setViews((old) => ({ ...old, [tab]: module.default })),
      () => setProblem({ message: "This view could not be loaded.", code: "page_missing" }));
  }, [tab]);
  if (tab === "checkpoints") return html`<${Checkpoints} id=${id} />`;
  if (problem) return html`<${Problem} problem=${problem} retry=${() => location.reload()} />`;
  const Shown = views[tab];
  return Shown ? html`<${Shown} key=${id} id=${id} detail=${detail} query=${query} />` :
    html`<${Skeleton} lines=${8} />`;
}

/** What the buttons of a run need. */
const scopesOf = (run) => [...(run.newest || ["crashed", "failed", "paused"].includes(run.status) ? ["recover"]
  : []), ...(["running", "waiting", "paused"].includes(run.status) ? ["write"] : [])];

/** The one thing to do next, and what else can be done. */
function Actions({ run, questions }) {
  const id = run.workflow_id;
  const primary = run.is_recovered ? html`<${Button} kind="primary" icon="play" scope="recover" onClick=${() =>
    act("resume", { workflow_id: id })}>Resume</${Button}>` : {
    crashed: html`<${Button} kind="primary" icon="retry" scope="recover" onClick=${() =>
      act("recover", { workflow_id: id })}>Recover</${Button}>`,
    failed: html`<${Button} kind="primary" icon="retry" scope="recover" onClick=${() =>
      act("resume", { workflow_id: id })}>Resume</${Button}>`,
    paused: html`<${Button} kind="primary" icon="play" scope="recover" onClick=${() =>
      act("resume", { workflow_id: id })}>Resume</${Button}>`,
    waiting: html`<${Button} kind="primary" icon="question" scope="write" onClick=${() =>
      act("approve", { workflow_id: id })}>Answer</${Button}>`,
    running: html`<${Button} icon="pause" scope="write" onClick=${() =>
      act("pause", { workflow_id: id })}>Pause</${Button}>`,
  }[run.status];
  // Each open question has its own button below.
  const isAsked = run.status === "waiting" && questions.length > 0;
  const canCancel = ["running", "waiting", "paused"].includes(run.status);
  return html`${isAsked ? null : primary}
    ${run.newest ? html`<${Button} icon="fork" scope="recover" onClick=${() =>
      act("fork", { checkpoint: run.newest.id })}>Fork</${Button}>` : null}
    ${canCancel ? html`<${Button} kind="danger" scope="write" onClick=${() =>
      act("cancel", { workflow_id: id })}>Cancel</${Button}>` : null}`;
}

function Questions({ questions }) {
  const open = questions.filter((question) => question.answer === null || question.answer === undefined);
  if (!open.length) return null;
  return html`<${Card} title="It waits for an answer" isFlush><ul
    class="needs">${open.map((question) => html`<li class="need">
    <${Status} value="waiting" /><div
      class="need-text"><strong>${short(question.question || question.name || question.step_id, 400)}</strong>
    <p class="muted">${question.step_id} · <${Time} at=${question.since} /></p></div>
    <${Button} kind="primary" scope="write" onClick=${() =>
      act("approve", { workflow_id: question.workflow_id,
        question })}>Answer</${Button}></li>`)}</ul></${Card}>`;
}

function lasted(detail) {
  const begin = Date.parse(detail.first_activity), until = Date.parse(detail.run.last_activity);
  return Number.isNaN(begin) || Number.isNaN(until) ? null : until - begin;
}

function holder(lease) {
  if (!lease) return "free";
  // One that was given up is not there any more: this one ran out, and its holder may have died.
  return lease.is_live ? short(lease.owner, 60) : `ran out; ${short(lease.owner, 60)} had it`;
}

function Head({ detail }) {
  const { run } = detail;
  const from = detail.forked_from;
  return html`<${Card} label="About this run"><${Facts} items=${[
    ["Status", html`<${Status} value=${run.status} title=${run.reason || null} />`],
    run.reason ? ["Why", html`<span title=${run.owner || null}>${short(run.reason, 400)}</span>`] : null,
    ["Last good checkpoint", run.last_good ?
      html`<a href=${to.checkpoint(run.last_good.id)}>@${run.last_good.sequence}</a> · <${Time}
        at=${run.last_good.created_at} />` : run.newest ? "none" : null, "last good checkpoint"],
    ["Began", html`<${Time} at=${detail.first_activity} />`],
    ["Last activity", html`<${Time} at=${run.last_activity} />`],
    ["Lasted", html`<${Span} ms=${lasted(detail)} />`],
    ["Checkpoints", html`<${Count} value=${run.checkpoints} />`, "checkpoint"],
    ["Events", html`<${Count} value=${detail.events} />`],
    ["State", html`<${Bytes} value=${run.state_bytes} />`],
    ["Lease", holder(detail.lease), "lease"],
    from ? ["Forked from", pointLink(from), "fork"] : null,
    (detail.forks || []).length ? ["Forks",
      html`${detail.forks.slice(0, 6).map(forkLink)}${detail.forks.length > 6 ?
        ` and ${detail.forks.length - 6} more` : ""}`, "fork"] : null,
  ]} /></${Card}>`;
}

// A point between two checkpoints (WF@event:123) has no page of its own: the run's events show it.
function pointLink(point) {
  const found = /^(.*)@event:(\d+)$/s.exec(point);
  const href = found ? to.run(found[1], "events", { after: found[2] }) : to.checkpoint(point);
  return html`<a href=${href}>${short(point, 48)}</a>`;
}

function forkLink(fork) {
  return html`<a href=${to.run(fork.workflow_id)}
    title=${`from ${fork.point}`}>${short(fork.workflow_id, 32)}</a> `;
}

/** What went wrong; where there is no such run, the way to those that are there. */
function Unknown({ detail: { problem, reload } }) {
  if (problem.status !== 404) return html`<${Problem} problem=${problem} retry=${reload} />`;
  const { message, place, code, request_id } = problem;
  return html`<${Problem} problem=${{ message, place, code, request_id }}><${Button} kind="primary"
    href=${to.runs()}>All runs</${Button}></${Problem}>`;
}

/** Begin what the first view needs while the page is being put together. */
function prepare(tab, id) {
  VIEWS[tab]?.().catch(() => {});
  if (tab === "timeline") prefetch(path`/runs/${id}/timeline`);
  if (tab === "graph") prefetch(path`/runs/${id}/graph`);
}

export default function Run({ params, query }) {
  const id = params.id;
  const detail = useGet(path`/runs/${id}`, { live: (event) => event.workflow_id === id });
  const tab = ["timeline", "graph", "checkpoints", "events", "report"].includes(query.tab) ? query.tab :
    "timeline";
  useMemo(() => prepare(tab, id), [id]);
  const run = detail.data?.run;
  const tabs = [
    { id: "timeline", label: "Timeline" }, { id: "graph", label: "Graph" },
      { id: "checkpoints", label: "Checkpoints", count: run?.checkpoints },
    { id: "events", label: "Events", count: detail.data?.events }, { id: "report", label: "Report" },
  ];
  return html`<${Page} title=${short(id, 120)} scopes=${run ? scopesOf(run) : []} crumbs=${[["Runs", to.runs()]]} actions=${run ?
    html`<${Actions} run=${run} questions=${detail.data.questions || []} />` : null} copy=${id}>
    ${detail.problem && !detail.data ? html`<${Unknown} detail=${detail} />`
      : html`
      <${Loaded} of=${detail} lines=${3}>${(data) =>
        html`<${Head} detail=${data} /><${Questions} questions=${data.questions || []} />`}</${Loaded}>
      <${Tabs} label="Views of the run" tabs=${tabs} current=${tab} hrefOf=${(one) =>
        to.run(id, one)}><${View} tab=${tab} id=${id} detail=${detail.data} query=${query} /></${Tabs}>`}
  </${Page}>`;
}
