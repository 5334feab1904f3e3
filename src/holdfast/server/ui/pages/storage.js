// What the store takes, what of it could go, and when it will be full.

import { html } from "../vendor/preact.js";
import { useGet } from "../api.js";
import { Badge, Button, Bytes, Card, Choice, Command, Count, Empty, Loaded, Meter, Figure, Page, Table, Term,
  act, bytesText, countText, counted, short } from "../parts.js";
import { ask, to } from "../router.js";
import GrowthChart from "./growth_chart.js";

const WINDOWS = [["7", "7 days"], ["30", "30 days"], ["90", "90 days"], ["365", "a year"]];
const KIND_TONES = ["info", "ok", "violet", "warn", "bad", "quiet"];
// A kind that takes less of the store has no part of its own.
const SHARE_MIN = 0.01;

export default function Storage({ query }) {
  const days = WINDOWS.some(([value]) => value === query.days) ? query.days : "30";
  const use = useGet("/stats/storage");
  const growth = useGet("/stats/growth", { query: { days } });
  const again = () => {
    use.reload();
    growth.reload();
  };
  return html`<${Page} title="Storage"
    note="What the store takes, what of it could go, and when it will be full."
    actions=${html`<${Button} icon="retry" onClick=${again}>Refresh</${Button}>
      <${Button} kind="primary" icon="trash" onClick=${() => act("prune", {})}>Preview a prune</${Button}>`}>
    <${Loaded} of=${use} lines=${3}>${(found) => html`<${Figures} use=${found} growth=${growth.data} />`}
      </${Loaded}>
    <${Card} title="Growth" actions=${html`<${Choice} label="Window" value=${days} options=${WINDOWS}
      onChange=${(value) => ask({ days: value })} />`}>
      <${Loaded} of=${growth} lines=${6}>${(found) => html`<${GrowthChart} growth=${found} /><${Forecast}
        growth=${found} />`}</${Loaded}>
    </${Card}>
    <${Loaded} of=${use} lines=${6}>${(found) => html`<${Kinds} use=${found} /><${Runs} use=${found} />`}
      </${Loaded}>
  </${Page}>`;
}

function Figures({ use, growth }) {
  const forecast = growth?.forecast;
  const ratio = use.dedup_ratio === null ? "–" : `${use.dedup_ratio.toFixed(1)}×`;
  return html`<div class="figures roomy" data-testid="storage-figures">
    <${Figure} label="Store" value=${bytesText(use.bytes)}
      note=${`${counted(use.checkpoints, "checkpoint")}, ${counted(use.total, "run")}`} />
    <${Figure} label=${html`Whole to stored <${Term} word="whole to stored" />`} value=${ratio}
      note=${`${bytesText(use.state_bytes)} whole, ${bytesText(use.stored_bytes)} stored`} />
    <${Figure} label=${html`Could go <${Term} word="could go" />`} value=${bytesText(use.reclaimable_bytes)}
      tone=${use.reclaimable ? "warn" : ""}
      note=${`${counted(use.reclaimable, "checkpoint")}; keeps the last ${use.retain_count}, and ${
        counted(use.retain_days, "day")}`} />
    <${Figure} label="Full in" ...${full(forecast, growth)} />
    <${Figure} label="Quarantine" value=${bytesText(use.quarantine_bytes)}
      note=${`${countText(use.barred)} in force, ${countText(use.quarantined - use.barred)} released`}
      href=${to.quarantine()} tone=${use.barred ? "bad" : ""} />
  </div>`;
}

function full(forecast, growth) {
  if (!growth) return { value: "…" };
  if (!forecast || forecast.days_left === null) return { value: "–", note: growth.reason ||
    "it does not grow, or nobody knows the room" };
  const days = Math.round(forecast.days_left);
  const what = forecast.what === "limit" ? "the limit" : "the disk";
  return { value: daysText(days), note: forecast.full_on ? `${what}, on ${forecast.full_on}` : what,
    tone: days < 7 ? "bad" : days < 30 ? "warn" : "ok" };
}

const shareText = (share) => (share < 0.005 ? "< 1 %" : `${Math.round(100 * share)} %`);

/** So many days; beyond ten years nobody can tell. */
const daysText = (days) => (days > 3650 ? "over 10 years" : counted(days, "day"));

function Forecast({ growth }) {
  const { forecast } = growth;
  if (!forecast) return growth.reason ? html`<p class="muted">No forecast: ${growth.reason}</p>` : null;
  const between = `between ${bytesText(forecast.low_bytes_per_day)} and ${bytesText(forecast.high_bytes_per_day)}`;
  const range = forecast.low_days_left !== null && forecast.high_days_left !== null &&
    forecast.low_days_left <= 3650
    ? ` At the faster growth in ${daysText(Math.round(forecast.low_days_left))}, at the slower in ${daysText(Math.round(forecast.high_days_left))}.`
      : "";
  return html`<p data-testid="forecast">Grows by about <strong>${bytesText(forecast.bytes_per_day)}
    </strong> a day (${between}).
    ${forecast.days_left === null ? "" : html` <strong>Full in ${daysText(Math.round(forecast.days_left))}
      </strong>, with ${bytesText(forecast.room_bytes)} left.${range}`}</p>`;
}

/** Each kind in a colour of its own; what takes less than a hundredth, or has none left, is one part. */
function folded(kinds) {
  const whole = kinds.reduce((sum, [, size]) => sum + size, 0);
  const isLarge = ([, size], at) => at < KIND_TONES.length - 1 && size >= SHARE_MIN * whole;
  const rest = kinds.filter((kind, at) => !isLarge(kind, at));
  const parts = kinds.filter((kind, at) => isLarge(kind, at) || rest.length === 1);
  const told = parts.map(([label, value], at) => ({ label, value, tone: KIND_TONES[at] }));
  if (rest.length < 2) return told;
  return [...told, { label: "other", value: rest.reduce((sum, [, size]) => sum + size, 0),
    tone: KIND_TONES[told.length], kinds: rest }];
}

function KindList({ parts, whole }) {
  return html`<ul class="kinds">${parts.map((part) => html`<li>${part.tone ? html`<span
    class="key ${part.tone}"></span>` : null}
    ${part.label.replaceAll("_", " ")} <${Bytes} value=${part.value} />
    <span class="muted num">${shareText(part.value / whole)}</span></li>`)}</ul>`;
}

function Kinds({ use }) {
  const kinds = Object.entries(use.kinds).filter(([, size]) => size > 0).sort((a, b) => b[1] - a[1]);
  if (!kinds.length) return null;
  const parts = folded(kinds), small = parts[parts.length - 1].kinds ?? [];
  return html`<${Card} title="By kind"><${Meter} parts=${parts} label="Bytes by kind" />
    <${KindList} parts=${parts} whole=${use.bytes} />
    ${small.length ? html`<details><summary>The ${small.length} kinds of other</summary><${KindList}
      parts=${small.map(([label, value]) => ({ label, value }))} whole=${use.bytes} /></details>` : null}
    ${use.free_bytes === null ? null : html`<p
      class="muted">Free on its disk: ${bytesText(use.free_bytes)}${use.disk_bytes
      ? ` of ${bytesText(use.disk_bytes)}` : ""}.</p>`}</${Card}>`;
}

function Runs({ use }) {
  const size = (key, label, more = {}) => ({ key, label, align: "right", render: (row) => html`<${Bytes}
    value=${row[key]} />`, ...more });
  const rows = use.workflows.map((row) => ({ ...row, stored_bytes: row.record_bytes + row.keyframe_bytes }));
  return html`<${Card} title="By run" isFlush actions=${html`<span class="muted">
    ${countText(use.looked_at)} of ${counted(use.total, "run")} looked at${use.left_off
    ? `, ${countText(use.left_off)} smaller ones left off` : ""}</span>`}>
    <${Table} label="Bytes by run" rows=${rows} keyOf=${(row) => row.workflow_id} href=${(row) =>
      to.run(row.workflow_id)}
      empty=${html`<${Empty} title="No run yet" command="holdfast demo" />`} columns=${[
        { key: "workflow_id", label: "Run", render: (row) => html`<a class="name"
          href=${to.run(row.workflow_id)} title=${row.workflow_id}>${short(row.workflow_id, 24)}</a> ${row.is_held ? html`<${Badge}
          tone="violet" icon="lock" title="A legal hold keeps everything">held</${Badge}>` : null}` },
        { key: "checkpoints", label: "Checkpoints", align: "right", render: (row) => html`<${Count}
          value=${row.checkpoints} />` },
        size("stored_bytes", "Stored"), size("record_bytes", "Records", { isSpare: true }),
          size("keyframe_bytes", "Keyframes", { isSpare: true }),
        size("state_bytes", "If stored whole", { isSpare: true }), size("newest_state_bytes", "Newest state", {
          isSpare: true }),
        { key: "blobs", label: "Blobs", align: "right", isSpare: true, render: (row) => html`<${Count}
          value=${row.blobs} />` },
        { key: "reclaimable", label: "Could go", align: "right", render: (row) => (row.reclaimable ? html`<span
          title=${counted(row.reclaimable, "checkpoint")}>${bytesText(row.reclaimable_bytes)}</span>`
          : html`<span class="muted">–</span>`) },
        { key: "prune", label: "Prune", align: "right", render: (row) => html`<${Button} kind="quiet"
          onClick=${() => act("prune", { workflow_id: row.workflow_id })}
          aria-label=${`Preview a prune of ${row.workflow_id}`}>Preview</${Button}>` },
      ]} />
    <div class="pad"><${Command} text="holdfast prune --dry-run" /></div></${Card}>`;
}
