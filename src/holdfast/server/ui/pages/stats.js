// What runs have in common: slow and failing agents, ways and loops, intervals, oddities, risks, recoveries.

import { html } from "../vendor/preact.js";
import { useGet } from "../api.js";
import { Badge, Button, Card, Choice, Command, Count, Empty, Loaded, Figure, Page, Table, Tabs, Time,
  bytesText, countText, counted, short, spanText } from "../parts.js";
import { ask, to } from "../router.js";

const TABS = [
  { id: "risks", label: "Risks" }, { id: "agents", label: "Agents" }, { id: "paths", label: "Paths and loops" },
  { id: "intervals", label: "Intervals" }, { id: "anomalies", label: "Anomalies" }, { id: "recoveries",
    label: "Recoveries" },
];
const LIMITS = [["50", "50 newest runs"], ["200", "200 newest runs"], ["1000", "1,000 newest runs"]];
const LEVELS = { low: ["ok", "check"], medium: ["warn", "warn"], high: ["bad", "bolt"] };

const seconds = (value) => (value === null || value === undefined ? "–" : spanText(value * 1000));
function percent(share) {
  if (share === null || share === undefined) return "–";
  if (share > 0 && share < 0.001) return "< 0.1 %";
  return `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
}

const right = (key, label, show, more = {}) => ({ key, label, align: "right", render: (row) => html`<span
  class="num">${show(row[key], row)}</span>`, ...more });
const run = (row) => html`<a class="name" href=${to.run(row.workflow_id)} title=${row.workflow_id}>${short(row.workflow_id,
  32)}</a>`;

export default function Stats({ query }) {
  const tab = TABS.some(({ id }) => id === query.tab) ? query.tab : "risks";
  const limit = LIMITS.some(([value]) => value === query.limit) ? query.limit : "200";
  const part = useGet(`/stats/${tab}`, { query: { limit, run: query.run } });
  const Part = PARTS[tab];
  return html`<${Page} title="Statistics" note="Counted over the newest runs, from their journals."
    actions=${html`<${Choice} label="Over" value=${limit} options=${LIMITS} onChange=${(value) => ask({
      limit: value })} />
      <${Button} icon="retry" onClick=${part.reload}>Refresh</${Button}>`}>
    ${query.run ? html`<p>Only <a href=${to.run(query.run)}>${query.run}</a>. <${Button} kind="quiet"
      onClick=${() => ask({ run: "" })}>All runs</${Button}></p>` : null}
    <${Tabs} label="Statistics" tabs=${TABS} current=${tab} onChange=${(id) => ask({ tab: id })}>
      <div class="stack"><${Loaded} of=${part} lines=${8}>${(found) => html`<${Part} found=${found} />
        <${LookedAt} found=${found} />`}</${Loaded}>
      <${Command} text=${`holdfast stats --${tab === "risks" ? "risk" : tab} --limit ${limit}`} /></div>
        </${Tabs}></${Page}>`;
}

function LookedAt({ found }) {
  if (found.looked_at === undefined) return null;
  return html`<p class="muted">
    ${countText(found.looked_at)} of ${counted(found.total, "run")} looked at.</p>`;
}

function Risks({ found }) {
  return html`<div class="figures roomy"><${Figure} label="Not ended" value=${countText(found.live)} />
      <${Figure} label="At high risk" value=${countText(found.runs.filter((one) =>
        one.level === "high").length)} tone=${found.runs.some((one) => one.level === "high") ? "bad" : ""} />
      <${Figure} label="Asleep" value=${countText(found.asleep)} note="not ended, quiet for a month" /></div>
    <${Table} label="Live runs by risk" rows=${found.runs} keyOf=${(row) => row.workflow_id} href=${(row) =>
      to.run(row.workflow_id)}
      empty=${html`<${Empty} title="No run is live" text="Nothing can go wrong where nothing runs."
        command="holdfast demo" />`} columns=${[
        { key: "level", label: "Risk", width: "110px", render: (row) => html`<${Badge}
          tone=${LEVELS[row.level]?.[0]} icon=${LEVELS[row.level]?.[1]}>${row.level}</${Badge}>` },
        right("points", "Points", countText, { title: "0 to 100, the sum of the reasons", isWide: true }),
        { key: "workflow_id", label: "Run", render: run },
        { key: "reasons", label: "Why", render: (row) => html`<ul class="reasons">${row.reasons.map((reason) =>
          html`<li><span class="num muted">+${reason.points}</span> ${reason.words}</li>`)}</ul>
          ${row.reasons.length ? null : html`<span class="muted">nothing speaks against it</span>`}` },
        { key: "agents", label: "Agents", isSpare: true, render: (row) => short(row.agents.join(", "), 40) },
        { key: "last_written", label: "Last written", isWide: true, render: (row) => html`<${Time}
          at=${row.last_written} />` },
      ]} />`;
}

function Agents({ found }) {
  const failing = found.filter((one) => one.failed).sort((a, b) => b.failure_rate - a.failure_rate ||
    b.failed - a.failed);
  return html`<${Card} title="Slowest" isFlush><${AgentTable} label="Agents by time" rows=${found} /></${Card}>
    <${Card} title="Most failing" isFlush><${AgentTable} label="Agents that failed" rows=${failing} isFailing
      empty=${html`<${Empty} title="No agent failed" />`} /></${Card}>`;
}

function AgentTable({ label, rows, isFailing, empty }) {
  const errors = { key: "errors", label: "Errors", render: (row) => Object.entries(row.errors).map(([name,
    count]) => `${name} ${count}×`).join(", ") || html`<span class="muted">–</span>` };
  const used = { key: "used", label: "Used", isWide: true, render: (row) =>
    Object.entries(row.used).map(([name, amount]) => `${name} ${+amount.toPrecision(6)}`).join(", ") ||
    html`<span class="muted">–</span>` };
  return html`<${Table} label=${label} rows=${rows} keyOf=${(row) => row.agent} empty=${empty || html`<${Empty}
    title="No agent was seen" command="holdfast demo" />`} columns=${[
    { key: "agent", label: "Agent" }, right("workflows", "Runs", countText, { isWide: true }),
      right("attempts", "Attempts", countText),
    right("failed", "Failed", countText), { ...right("failure_rate", "Failing", percent), render: (row) =>
      html`<${Badge} tone=${row.failure_rate > 0.2 ? "bad" : row.failure_rate ? "warn" : "ok"}>
      ${percent(row.failure_rate)}</${Badge}>` },
    ...(isFailing ? [right("retries", "Retries", countText, { isWide: true }), right("lost", "Lost", countText,
      { title: "Its process died", isWide: true }), errors]
      : [right("median_seconds", "Median", seconds), right("p95_seconds", "95 %", seconds),
        right("max_seconds", "Longest", seconds, { isWide: true }), right("total_seconds", "Together",
        seconds), used]),
  ]} />`;
}

const Way = ({ agents }) => html`<ol class="way">${agents.slice(0, 30).map((agent) => html`<li>${agent}
  </li>`)}${agents.length > 30 ? html`<li>… ${agents.length - 30} more</li>` : null}</ol>`;

function Paths({ found }) {
  return html`<${Card} title="Ways that runs take" isFlush actions=${html`<span class="muted">
    ${counted(found.runs, "whole way")}${found.cut ? `, ${countText(found.cut)} not whole`
    : ""}${found.left_off ? `, ${counted(found.left_off, "further way")}` : ""}</span>`}>
      <${Table} label="Paths" rows=${found.paths} keyOf=${(row) => row.agents.join("→")} empty=${html`<${Empty}
        title="No way is known" />`} columns=${[
        { key: "agents", label: "Way", render: (row) => html`<${Way} agents=${row.agents} />` }, right("runs",
          "Runs", countText), right("share", "Share", percent),
        right("completed", "Completed", countText), right("failed", "Failed", countText), right("unfinished",
          "Not ended", countText, { isWide: true }),
      ]} /></${Card}>
    <${Card} title="Loops" isFlush><${Table} label="Loops" rows=${found.loops} keyOf=${(row) =>
      row.agents.join("→")} empty=${html`<${Empty} title="No run went in circles" />`} columns=${[
        { key: "agents", label: "Circle", render: (row) => html`<${Way} agents=${row.agents} />` },
          right("runs", "Runs", countText),
        right("median_rounds", "Rounds, usually", (value) => +value.toFixed(1)), right("max_rounds", "At most",
          countText),
      ]} /></${Card}>
    <${Card} title="Who follows whom" isFlush><${Table} label="Steps between agents" rows=${found.steps}
      keyOf=${(row) => `${row.before}→${row.after}`} empty=${html`<${Empty} title="No step between agents" />`}
      columns=${[
        { key: "before", label: "After" }, { key: "after", label: "comes" }, right("count", "Times", countText),
      ]} /></${Card}>`;
}

/** Seconds that depend on what a checkpoint costs, which is not measured everywhere. */
const byCost = (value, row) => `${seconds(value)}${row.is_cost_measured ? "" : " (assumed)"}`;

function Intervals({ found }) {
  const all = found.overall;
  // After few failures, or a short time, what is between them is mostly assumed.
  const isEstimate = all.failures < 5 || all.ran_seconds < all.mtbf_seconds;
  return html`<div class="figures roomy"><${Figure} label="Usual interval" value=${seconds(all.median_seconds)}
    />
      <${Figure} label="Recommended (Daly)" value=${byCost(all.recommended_seconds, all)} tone="info"
        note=${`Young: ${byCost(all.young_seconds, all)}`} />
      <${Figure} label="A checkpoint costs" value=${seconds(all.cost_seconds)} note=${all.is_cost_measured
        ? "measured" : "assumed"} />
      <${Figure} label="Between failures" value=${seconds(all.mtbf_seconds)}
        note=${`${isEstimate ? "an estimate: " : ""}${countText(all.failures)} seen in ${seconds(all.ran_seconds)}`} />
      <${Figure} label="Work saved" value=${seconds(all.saved_seconds)}
        note=${`${byCost(all.spent_seconds, all)} spent on checkpoints${all.is_cost_measured
        ? ` (${percent(all.spent_share)})` : ""}`} tone="ok" />
      <${Figure} label="Work lost" value=${seconds(all.lost_seconds)} tone=${all.lost_seconds ? "warn" : ""} />
        </div>
    <p><strong>${all.advice}</strong></p>
    <p class="muted">Too few checkpoints lose work when a process dies, too many lose time. Young's formula is the square root of twice the cost and the time between failures; Daly's is closer.</p>
    <${Table} label="Intervals by run" rows=${found.workflows} keyOf=${(row) => row.workflow_id}
      href=${(row) => to.run(row.workflow_id)} empty=${html`<${Empty} title="No run has checkpoints"
      command="holdfast demo" />`} columns=${[
      { key: "workflow_id", label: "Run", render: run }, right("checkpoints", "Checkpoints", countText),
        right("median_seconds", "Usual", seconds),
      right("recommended_seconds", "Recommended", byCost), right("cost_seconds", "Cost", byCost, {
        isWide: true }), right("failures", "Failures", countText, { isWide: true }),
      right("saved_seconds", "Saved", seconds, { isWide: true }), right("lost_seconds", "Lost", seconds, {
        isWide: true }), { key: "advice", label: "Advice", isWide: true, render: (row) => html`<span
        class="advice">${row.advice}</span>` },
    ]} />`;
}

function Anomalies({ found }) {
  const show = (row, value) => (row.kind === "size" ? bytesText(value) : seconds(value));
  const place = (row) => (row.kind === "size" ? html`<a href=${to.checkpoint(row.place)}>${short(row.place, 36)}
    </a>` : html`<a href=${to.run(row.workflow_id)}>${short(`${row.workflow_id} · ${row.place}`, 40)}</a>`);
  return html`<${Table} label="What is unlike the rest" rows=${found.anomalies} keyOf=${(row) =>
    `${row.kind} ${row.workflow_id} ${row.place} ${row.at}`}
      empty=${html`<${Empty} title="Nothing is unlike the rest"
        text=${`${countText(found.compared)} values were compared; with fewer than ${found.least} of a kind nothing is said.`}
        />`} columns=${[
        { key: "kind", label: "Kind", render: (row) => html`<${Badge} tone="warn" icon="warn">${row.kind}
          </${Badge}>` }, { key: "place", label: "Where", render: place },
        { key: "reason", label: "Why" }, { key: "value", label: "Is", align: "right", render: (row) =>
          html`<span class="num">${show(row, row.value)}</span>` },
        { key: "usual", label: "Usual", align: "right", render: (row) => html`<span class="num">${show(row,
          row.usual)}</span>` },
        right("score", "Deviations", (value) => value.toFixed(1), { isWide: true }), { key: "agent",
          label: "Agent", isWide: true }, { key: "at", label: "When", isWide: true, render: (row) =>
          html`<${Time} at=${row.at} />` },
      ]} />${found.left_off ? html`<p class="muted">${countText(found.left_off)} more are left off.</p>`
        : null}`;
}

function Recoveries({ found }) {
  return html`<div class="figures roomy"><${Figure} label="Success rate" value=${percent(found.success_rate)}
    note=${`${countText(found.told)} succeeded, ${countText(found.refused)} did not, by the trail`}
    tone=${found.success_rate === null ? "" : found.success_rate < 0.9 ? "bad" : "ok"} />
      <${Figure} label="Recovered" value=${countText(found.recovered)}
        note=${`${countText(found.crashed)} after a process died`} />
      <${Figure} label="From an older checkpoint" value=${countText(found.fallbacks)} tone=${found.fallbacks
        ? "warn" : ""} />
      <${Figure} label="Completed since" value=${countText(found.completed)}
        note=${`${countText(found.went_on)} went on, ${countText(found.failed_again)} failed again`} />
      <${Figure} label="Events replayed, usually" value=${found.median_events_replayed === null ? "–"
        : countText(found.median_events_replayed)} /></div>
    <${Table} label="Newest recoveries" rows=${found.newest} keyOf=${(row) => `${row.workflow_id} ${row.at}`}
      href=${(row) => to.run(row.workflow_id)} empty=${html`<${Empty} title="Nothing had to be recovered" />`}
      columns=${[
      { key: "at", label: "When", render: (row) => html`<${Time} at=${row.at} />` }, { key: "workflow_id",
        label: "Run", render: run }, { key: "after", label: "Stood before" },
      { key: "outcome", label: "Since then" }, { key: "mode", label: "Mode", isWide: true },
      { key: "checkpoint", label: "From", align: "right", render: (row) => (row.checkpoint === null ? "–"
        : html`<a class="num" href=${to.checkpoint(`${row.workflow_id}@${row.checkpoint}`)}>@${row.checkpoint}
        </a>${row.is_fallback ? html` <${Badge} tone="warn" icon="warn">older</${Badge}>` : null}`) },
      right("events_replayed", "Events replayed", (value) => html`<${Count} value=${value} />`, {
        isWide: true }),
    ]} />`;
}

const PARTS = { risks: Risks, agents: Agents, paths: Paths, intervals: Intervals, anomalies: Anomalies,
  recoveries: Recoveries };
