// Numbers, sizes and times in words.

import { html, signal } from "./vendor/preact.js";

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];
const COUNT = new Intl.NumberFormat("en");
const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function bytesText(value) {
  if (value === null || value === undefined) return "–";
  let size = Math.abs(value), unit = 0;
  while (size >= 999.5 && unit < UNITS.length - 1) { size /= 1000; unit++; }
  const digits = unit === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return `${value < 0 ? "-" : ""}${size.toFixed(digits)} ${UNITS[unit]}`;
}

export function countText(value) {
  return value === null || value === undefined ? "–" : COUNT.format(value);
}

/** So many of something: "1 run", "12 runs". */
export function counted(count, word) {
  return `${countText(count)} ${word}${count === 1 ? "" : "s"}`;
}

export function spanText(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 120_000) return `${Math.round(ms / 1000)} s`;
  if (ms < 7_200_000) return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`;
  if (ms < 172_800_000) return `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} min`;
  return `${Math.floor(ms / 86_400_000)} days`;
}

export function ageText(at, now = Date.now()) {
  const seconds = Math.round((now - at) / 1000), size = Math.abs(seconds);
  if (size < 5) return "now";
  const [count, unit] = size < 60 ? [size, "s"] : size < 3600 ? [Math.floor(size / 60), "min"]
    : size < 86_400 ? [Math.floor(size / 3600), "h"] :
    [Math.floor(size / 86_400), size < 172_800 ? "day" : "days"];
  return seconds < 0 ? `in ${count} ${unit}` : `${count} ${unit} ago`;
}

export function timeText(at) {
  return LOCAL.format(new Date(at));
}

/** From one time to another; what both have in common, as the day, is said once. */
export function rangeText(from, until) {
  return LOCAL.formatRange(new Date(from), new Date(until));
}

/** Write a word so that a shell takes it as it is, whatever is in it. */
export function quoted(text) {
  const word = String(text);
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

export function short(text, max = 24) {
  const whole = String(text ?? "");
  if (whole.length <= max) return whole;
  const half = Math.floor((max - 1) / 2);
  return `${whole.slice(0, half)}…${whole.slice(-half)}`;
}

const tick = signal(Date.now());
setInterval(() => { tick.value = Date.now(); }, 10_000);
// Reading the tick draws the age again with it; what is younger than the tick is not of the future.
const now = () => Math.max(tick.value, Date.now());

export function Time({ at, isLong }) {
  if (!at) return html`<span class="muted">–</span>`;
  const moment = new Date(at);
  if (Number.isNaN(moment.getTime())) return html`<span>${String(at)}</span>`;
  const title = `${LOCAL.format(moment)} (here)\n${moment.toISOString()} (UTC)`;
  const text = isLong ? `${LOCAL.format(moment)} · ${ageText(moment, now())}` :
    ageText(moment, now());
  return html`<time class="num" datetime=${moment.toISOString()} title=${title}>${text}</time>`;
}

export function Span({ ms }) {
  return html`<span class="num">${spanText(ms)}</span>`;
}

export function Bytes({ value }) {
  return html`<span class="num" title=${value === null || value === undefined ? "" :
    `${countText(value)} bytes`}>
    ${bytesText(value)}</span>`;
}

export function Count({ value }) {
  return html`<span class="num">${countText(value)}</span>`;
}
