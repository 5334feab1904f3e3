// What needs somebody, most urgent first; then what is at work, with the age of its last good checkpoint.

import { html, useEffect, useMemo } from "../vendor/preact.js";
import { useGet } from "../api.js";
import { Badge, Bytes, Button, Card, Command, Count, Empty, Figure, Icon, Loaded, Page, Status, Table, Term,
  Time, act, countText, counted, short, spanText, toneOf } from "../parts.js";
import { to } from "../router.js";

// So many of one kind are shown at once.
const SHOWN_MAX = 12;
const SKEW_MS_MAX = 60_000;
// So soon it is asked again while the server has not looked at every run.
const UNFINISHED_MS = 1_000;
const STATUSES = ["running", "waiting", "paused", "crashed", "failed", "cancelled", "completed", "idle",
  "unreadable"];

// What the one primary action of a need is: its words, the scope that it needs, and what it does.
const ACTIONS = {
  recover: ["Recover", "recover", (need) => act("recover", { workflow_id: need.workflow_id })],
  resume: ["Resume", "recover", (need) => act("resume", { workflow_id: need.workflow_id })],
  approve: ["Answer", "write", (need) => act("approve", { workflow_id: need.workflow_id })],
};

function Action({ need }) {
  const name = need.workflow_id || need.checkpoint || "";
  if (need.action === "quarantine") {
    return html`<${Button} kind="primary" href=${to.quarantine({ place: need.checkpoint })}>Look at it<span
      class="sr"> ${name}</span></${Button}>`;
  }
  const [word, scope, press] = ACTIONS[need.action] || [];
  if (!word) return html`<${Button} href=${need.workflow_id ? to.run(need.workflow_id) :
    to.audit()}>Open<span class="sr"> ${name}</span></${Button}>`;
  return html`<${Button} kind="primary" scope=${scope} onClick=${() => press(need)}
    aria-label=${`${word} ${name}`}>${word}</${Button}>`;
}

function NeedRow({ need }) {
  const href = need.workflow_id ? to.run(need.workflow_id) : to.audit();
  return html`<li class="need" data-testid="need" data-kind=${need.kind}>
    <${Status} value=${need.kind} />
    <div class="need-text"><a class="need-name"
      href=${href}>${short(need.workflow_id || "Audit trail", 80)}</a>
      <p class="muted"><span title=${need.owner || null}>${short(need.reason, 300)}</span>${need.reason ? " · " : ""}<${Time} at=${need.since} />
      ${need.checkpoint ? html` · <a
        href=${to.checkpoint(need.checkpoint)}>${short(need.checkpoint, 40)}</a>` : null}</p></div>
    <${Action} need=${need} />
    <${Command} text=${need.command} />
  </li>`;
}

/** What is left of a kind that has very many: a link to all of them. */
function Rest({ kind, shown, count }) {
  // A run that was recovered and not resumed stands idle.
  const href = kind === "quarantined" ? to.quarantine() :
    to.runs({ status: kind === "recovered" ? "idle" : kind });
  return html`<li class="need"><${Status} value=${kind} /><p
    class="need-text muted">and ${countText(count - shown)} more</p>
    <${Button} href=${href}>All that are ${kind}</${Button}></li>`;
}

/** The needs in their order, of each kind the first ones only. */
function Needs({ needs, counts }) {
  const kinds = [...new Set(needs.map((need) => need.kind))];
  return html`<ul class="needs">${kinds.map((kind) => {
    const mine = needs.filter((need) => need.kind === kind), count = Math.max(mine.length, counts[kind] || 0);
    const shown = mine.slice(0, SHOWN_MAX);
    return html`${shown.map((need) =>
      html`<${NeedRow} key=${`${need.kind} ${need.workflow_id} ${need.checkpoint}`} need=${need} />`)}
      ${count > shown.length ? html`<${Rest} key=${kind} kind=${kind} shown=${shown.length} count=${count}
        />` : null}`;
  })}</ul>`;
}

const COLUMNS = [
  { key: "workflow_id", label: "Run", render: (run) =>
    html`<a href=${to.run(run.workflow_id)}>${short(run.workflow_id, 60)}</a>` },
  { key: "status", label: "Status", render: (run) =>
    html`<${Status} value=${run.status} title=${run.reason || null} />` },
  { key: "good", label: html`Last good checkpoint<${Term} word="last good checkpoint" />`, render: (run) => (run.last_good
    ? html`<${Time} at=${run.last_good.created_at} /> <a class="muted"
    href=${to.checkpoint(run.last_good.id)}>@${run.last_good.sequence}</a>`
    : html`<span class="muted">${run.newest ? "none" : "none yet"}</span>`) },
  { key: "last_activity", label: "Last activity", isWide: true, render: (run) =>
    html`<${Time} at=${run.last_activity} />` },
  { key: "checkpoints", label: "Checkpoints", align: "right", isWide: true, render: (run) =>
    html`<${Count} value=${run.checkpoints} />` },
  { key: "state_bytes", label: "State", align: "right", isWide: true, render: (run) =>
    html`<${Bytes} value=${run.state_bytes} />` },
  { key: "owner", label: "Process", isWide: true, render: (run) =>
    (run.owner ? html`<span class="mono">${short(run.owner, 28)}</span>` : "–") },
];

export default function Home() {
  const overview = useGet("/overview", { live: true });
  useEffect(() => {
    if (overview.data?.is_complete !== false) return undefined;
    const timer = setTimeout(overview.reload, UNFINISHED_MS);
    return () => clearTimeout(timer);
  }, [overview.data]);
  return html`<${Page} title="What needs you"><${Loaded} of=${overview} lines=${8}>${(data) =>
    html`<${Glance} data=${data} />`}</${Loaded}></${Page}>`;
}

/** Ages are reckoned by the clock of this browser: say so where it differs from that of the server. */
function Skew({ now }) {
  const ms = useMemo(() => Date.now() - Date.parse(now), [now]);
  if (!(Math.abs(ms) > SKEW_MS_MAX)) return null;
  return html`<p role="status"><${Badge} tone="warn" icon="warn">Clocks differ</${Badge}
    > This browser's clock is ${spanText(Math.abs(ms))} ${ms > 0 ? "ahead of" : "behind"} the server's: ages
    are off by that much.</p>`;
}

/** A store of very many runs is not looked at as a whole at once. */
function Unfinished({ isComplete, total }) {
  if (isComplete !== false) return null;
  return html`<p role="status" data-testid="unfinished"><${Badge} tone="info"
    icon="info">Looking</${Badge}> ${counted(total, "run")} so far; there are more.</p>`;
}

function Glance({ data }) {
  const total = Object.values(data.counts).reduce((sum, count) => sum + count, 0);
  if (!total && !data.needs.length && data.is_complete) {
    return html`<${Card}><${Empty} title="This store has no runs yet"
      text="A run appears with its first checkpoint. To see one now:" command="holdfast demo" /></${Card}>`;
  }
  const calm = html`<div class="empty" data-testid="calm"><${Badge} tone="ok"
    icon="check">All is well</${Badge}><p>Nothing crashed, failed, waits or is in quarantine.</p></div>`;
  return html`<${Skew} now=${data.now} /><${Unfinished} isComplete=${data.is_complete} total=${total} /><div class="figures" role="group" aria-label="Runs by status">
      ${STATUSES.map((status) => html`<${Figure} label=${status} value=${countText(data.counts[status] || 0)}
        href=${to.runs({ status })}
        tone=${data.counts[status] ? toneOf(status) : ""} />`)}
      <${Figure} label="all runs" value=${countText(total)} href=${to.runs()} /></div>
    <${Card} title="Needs you" isFlush>
      ${data.needs.length ? html`<${Needs} needs=${data.needs} counts=${data.counts} />` : calm}
    </${Card}>
    <${Card} title="At work now" isFlush
      actions=${html`<a href=${to.runs({ status: "running" })}>All running <${Icon} name="right" /></a>`}>
      <${Table} label="Runs at work now" columns=${COLUMNS} rows=${data.live} keyOf=${(run) =>
        run.workflow_id} href=${(run) => to.run(run.workflow_id)}
        empty=${html`<${Empty} title="No run is at work"
          text="A run that a process holds the lease of shows up here." />`} />
    </${Card}>`;
}
