// How the store grew, day by day, and where that leads: a line, and the table behind it.

import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { Behind, Bytes, Count, Table, bytesText } from "../parts.js";

const HEIGHT = 240;
const LEFT = 72;
const RIGHT = 16;
const TOP = 12;
const BOTTOM = 28;
const DAY_MS = 86_400_000;
const AHEAD_MAX = 365;
const LABEL_PX = 92;

const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" });
const msOf = (day) => Date.parse(`${day}T00:00:00Z`);

/** Points of what was and of what is to be expected: {ms, bytes, isExpected}. */
function points({ days, factor, forecast }) {
  const were = days.map((day) => ({ ms: msOf(day.day), bytes: day.total_bytes * factor, isExpected: false }));
  if (!forecast || forecast.bytes_per_day <= 0) return { were, expected: [] };
  const last = were[were.length - 1];
  const ahead = Math.min(Math.max(days.length, 7), AHEAD_MAX);
  const later = Array.from({ length: ahead }, (_, at) => ({
    ms: last.ms + (at + 1) * DAY_MS, bytes: last.bytes + (at + 1) * forecast.bytes_per_day, isExpected: true,
  }));
  return { were, expected: [last, ...later] };
}

/** Round marks from 0 to at least `most`. */
function marks(most) {
  const rough = Math.max(most, 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= rough);
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, at) => at * step);
}

function useWidth(box) {
  const [width, setWidth] = useState(640);
  useLayoutEffect(() => {
    const look = () => setWidth(box.current?.clientWidth || 640);
    look();
    const watch = new ResizeObserver(look);
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  return width;
}

function Chart({ growth }) {
  const box = useRef(null);
  const width = useWidth(box);
  const [near, setNear] = useState(null);
  const { were, expected } = points(growth);
  const all = [...were, ...expected.slice(1)];
  const [first, last] = [all[0].ms, all[all.length - 1].ms];
  const rows = marks(Math.max(...all.map((point) => point.bytes)));
  const x = (ms) => LEFT + ((ms - first) / (last - first)) * (width - LEFT - RIGHT);
  const y = (bytes) => HEIGHT - BOTTOM - (bytes / rows[rows.length - 1]) * (HEIGHT - TOP - BOTTOM);
  const path = (line) => line.map((point, at) => `${at ? "L"
    : "M"}${x(point.ms).toFixed(1)} ${y(point.bytes).toFixed(1)}`).join("");
  const every = Math.max(1, Math.ceil((all.length * LABEL_PX) / (width - LEFT - RIGHT)));
  const point = (event) => {
    const at = event.clientX - box.current.getBoundingClientRect().left;
    setNear(all.reduce((best, one) => (Math.abs(x(one.ms) - at) < Math.abs(x(best.ms) - at) ? one : best)));
  };
  return html`<div ref=${box} class="chart"><svg width=${width} height=${HEIGHT} role="img"
    aria-label=${said(growth)}
      onPointerMove=${point} onPointerLeave=${() => setNear(null)}>
    ${rows.map((bytes) => html`<line class="rule" x1=${LEFT} x2=${width - RIGHT} y1=${y(bytes)} y2=${y(bytes)}
      />
      <text x=${LEFT - 8} y=${y(bytes) + 4} text-anchor="end">${bytesText(bytes)}</text>`)}
    ${all.map((one, at) => at % every === 0 && html`<text x=${x(one.ms)} y=${HEIGHT - 8} text-anchor="middle">
      ${DAY.format(one.ms)}</text>`)}
    <path class="area" d=${`${path(were)}L${x(were[were.length - 1].ms)} ${y(0)}L${x(first)} ${y(0)}Z`} />
    <path class="were" d=${path(were)} /><path class="expected" d=${path(expected)} />
    ${near ? html`<line class="near" x1=${x(near.ms)} x2=${x(near.ms)} y1=${TOP} y2=${HEIGHT - BOTTOM} />
      <circle cx=${x(near.ms)} cy=${y(near.bytes)} r="4" />` : null}</svg>
    <p class="chart-near num" aria-hidden="true">${near
      ? `${DAY.format(near.ms)}: ${bytesText(near.bytes)}${near.isExpected ? ", expected" : ""}` : "\u00a0"}</p>
      </div>`;
}

function said({ days, store_bytes: now, forecast }) {
  const more = forecast ? ` Growing by about ${bytesText(forecast.bytes_per_day)} a day.` : "";
  return `Size of the store from ${days[0].day} to ${days[days.length - 1].day}: ${bytesText(now)} now.${more}`;
}

export default function GrowthChart({ growth }) {
  if (!growth.days.length) return html`<p class="muted">No checkpoint was made in these days.</p>`;
  const right = (key, label, Show) => ({ key, label, align: "right", render: (row) => html`<${Show}
    value=${row[key]} />` });
  return html`${growth.days.length > 1 ? html`<${Chart} growth=${growth} />
    <p class="chart-legend"><span class="key were"></span>Store <span class="key expected">
      </span>Expected if it goes on like that</p>`
    : html`<p class="muted">All checkpoints of these days were made on one day; a line needs two.</p>`}
    ${growth.is_whole ? null : html`<p
      class="muted">Not every run was looked at: older ones are missing from the line.</p>`}
    <${Behind} label="The days as a table"><${Table} label="Growth by day" rows=${growth.days} keyOf=${(row) =>
      row.day} height="320px" columns=${[
      { key: "day", label: "Day (UTC)" }, right("checkpoints", "Checkpoints made", Count), right("kept",
        "Kept", Count),
      right("bytes", "Bytes", Bytes), right("total_bytes", "Sum", Bytes),
    ]} /></${Behind}>`;
}
