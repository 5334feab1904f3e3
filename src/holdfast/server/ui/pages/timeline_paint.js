// Drawing a timeline on its canvases. Nothing here knows of the page.

import { colour, spanText, toneOf } from "../parts.js";
import { AXIS_PX, dotTop, firstAt, spanHeight, spanTop } from "./timeline_model.js";
import { ticks } from "./timeline_scale.js";

const DOT_PX = 4;
const TONES = ["ok", "bad", "warn", "info", "violet", "quiet"];
const TIME = { hour: "2-digit", minute: "2-digit", hour12: false };
const CLOCKS = {
  day: new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" }),
  minute: new Intl.DateTimeFormat(undefined, TIME),
  second: new Intl.DateTimeFormat(undefined, { ...TIME, second: "2-digit" }),
  milli: new Intl.DateTimeFormat(undefined, { ...TIME, second: "2-digit", fractionalSecondDigits: 3 }),
};

export function palette() {
  const found = {};
  for (const name of ["surface", "sunken", "line", "line-strong", "text", "muted", "accent", "accent-soft",
    ...TONES, ...TONES.map((tone) => `${tone}-soft`)]) found[name] = colour(name);
  return found;
}

/** Make a canvas as large as it is shown, as sharp as the screen; answer its context. */
export function fit(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  const wide = Math.round(width * ratio), high = Math.round(height * ratio);
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}

/** Draw what is seen: {model, scale, from, until, width, height, gutter, scroll, selected, colours}. */
export function paint(pen, view) {
  const { width, height } = view;
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const perPixel = (view.until - view.from) / Math.max(1, width - view.gutter);
  const x = (place) => view.gutter + (place - view.from) / perPixel;
  pen.save();
  pen.beginPath();
  pen.rect(view.gutter, 0, width - view.gutter, height);
  pen.clip();
  paintGaps(pen, view, x);
  paintLanes(pen, view, x, perPixel);
  paintAxis(pen, view, x, perPixel);
  pen.restore();
  paintGutter(pen, view);
}

function paintGaps(pen, view, x) {
  for (const piece of view.scale.pieces) {
    if (!piece.isGap || piece.until < view.from || piece.from > view.until) continue;
    const left = x(piece.from), wide = x(piece.until) - left;
    pen.fillStyle = view.colours.sunken;
    pen.fillRect(left, AXIS_PX, wide, view.height - AXIS_PX);
    pen.strokeStyle = view.colours.line;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.setLineDash([3, 3]);
    pen.moveTo(left + 0.5, AXIS_PX); pen.lineTo(left + 0.5, view.height);
    pen.moveTo(left + wide - 0.5, AXIS_PX); pen.lineTo(left + wide - 0.5, view.height);
    pen.stroke();
    pen.setLineDash([]);
  }
}

function paintLanes(pen, view, x, perPixel) {
  const { model, scroll, height, colours } = view;
  pen.save();
  pen.beginPath();
  pen.rect(0, AXIS_PX, view.width, height - AXIS_PX);
  pen.clip();
  pen.translate(0, AXIS_PX - scroll);
  for (const lane of model.lanes) {
    if (lane.top + lane.height < scroll || lane.top > scroll + height) continue;
    pen.fillStyle = colours.line;
    pen.fillRect(0, lane.top + lane.height - 0.5, view.width, 1);
    pen.fillRect(view.gutter, dotTop(lane) - 0.5, view.width, 1);
    paintSpans(pen, view, lane, x, perPixel);
    paintMarks(pen, view, lane, x);
  }
  paintLinks(pen, view, x);
  for (const lane of model.lanes) {
    if (lane.top + lane.height < scroll || lane.top > scroll + height) continue;
    paintDots(pen, view, lane, x, perPixel);
  }
  pen.restore();
}

function paintSpans(pen, view, lane, x, perPixel) {
  const high = spanHeight();
  const lastX = [-1, -1, -1];
  for (const { span, row, from, until } of lane.spans) {
    if (until < view.from) continue;
    if (from > view.until) break;
    const tone = toneOf(span.status);
    const left = Math.max(x(from), view.gutter - 4), wide =
      Math.max((until - Math.max(from, view.from - 4 * perPixel)) / perPixel, 1.5);
    // Where many lie on one pixel, one is enough; what failed is always seen.
    if (wide < 2 && left - lastX[row] < 1 && tone !== "bad") continue;
    lastX[row] = left;
    const top = spanTop(lane, row);
    pen.fillStyle = view.colours[tone];
    pen.globalAlpha = 0.25;
    pen.fillRect(left, top, wide, high);
    pen.globalAlpha = 1;
    pen.fillRect(left, top, Math.min(wide, 3), high);
    if (wide < 4) continue;
    if (wide > 44) {
      pen.fillStyle = view.colours.text;
      pen.font = "10.5px system-ui, sans-serif";
      const word = tone === "bad" ? `× ${span.step}` : span.step;
      pen.fillText(cutTo(word, wide - 10), left + 6, top + high / 2);
    }
  }
}

function cutTo(text, wide) {
  const room = Math.floor(wide / 5.7);
  return text.length <= room ? text : `${text.slice(0, Math.max(1, room - 1))}…`;
}

function paintDots(pen, view, lane, x, perPixel) {
  const { placeOf, checkpoints } = view.model;
  const y = dotTop(lane);
  const begin = firstAt(lane.dots.length, (at) => placeOf[lane.dots[at]], view.from - 8 * perPixel);
  let last = -Infinity;
  for (let nth = begin; nth < lane.dots.length; nth++) {
    const at = lane.dots[nth];
    if (placeOf[at] > view.until + 8 * perPixel) break;
    const isBad = checkpoints.status[at] === "failed" || checkpoints.type[at] === "error_state";
    const left = x(placeOf[at]);
    if (left - last < 3 && !isBad) continue;
    const next = nth + 1 < lane.dots.length ? x(placeOf[lane.dots[nth + 1]]) : Infinity;
    // Where they lie close each is a line, so that they stay apart.
    if (left - last < 2 * DOT_PX || next - left < 2 * DOT_PX) line(pen, view.colours, left, y, isBad);
    else dot(pen, view.colours, left, y, isBad, Boolean(checkpoints.label[at]));
    last = left;
  }
  if (view.selected !== null && lane.dots.includes(view.selected)) ring(pen, view.colours,
    x(placeOf[view.selected]), y);
}

function line(pen, colours, left, y, isBad) {
  pen.fillStyle = isBad ? colours.bad : colours.info;
  if (isBad) pen.fillRect(left - 1.5, y - 6, 3, 12);
  else pen.fillRect(left - 1, y - 4, 2, 8);
}

// A checkpoint of a failure is a square: not told by its colour alone. One with a label has a core.
function dot(pen, colours, left, y, isBad, hasLabel) {
  pen.fillStyle = isBad ? colours.bad : colours.info;
  pen.beginPath();
  if (isBad) pen.rect(left - DOT_PX, y - DOT_PX, 2 * DOT_PX, 2 * DOT_PX);
  else pen.arc(left, y, hasLabel ? DOT_PX + 1 : DOT_PX, 0, 7);
  pen.fill();
  if (!hasLabel) return;
  pen.fillStyle = colours.surface;
  pen.beginPath();
  pen.arc(left, y, 2, 0, 7);
  pen.fill();
}

function ring(pen, colours, left, y) {
  pen.strokeStyle = colours.accent;
  pen.lineWidth = 2;
  pen.beginPath();
  pen.arc(left, y, DOT_PX + 4, 0, 7);
  pen.stroke();
}

function paintMarks(pen, view, lane, x) {
  pen.fillStyle = view.colours.violet;
  let last = -Infinity;
  for (const { place } of lane.marks) {
    if (place < view.from || place > view.until) continue;
    const left = x(place);
    if (left - last < 9) continue;
    last = left;
    pen.beginPath();
    pen.moveTo(left - 4, lane.top + 1);
    pen.lineTo(left + 4, lane.top + 1);
    pen.lineTo(left, lane.top + 7);
    pen.fill();
  }
}

function paintLinks(pen, view, x) {
  pen.strokeStyle = view.colours.muted;
  pen.fillStyle = view.colours.muted;
  pen.lineWidth = 1;
  let last = -Infinity;
  for (const { place, from, until } of view.model.links) {
    if (place < view.from || place > view.until) continue;
    const left = x(place);
    if (left - last < 8) continue;
    last = left;
    const begin = dotTop(from), end = dotTop(until), way = Math.sign(end - begin) || 1;
    pen.globalAlpha = 0.45;
    pen.beginPath();
    pen.moveTo(left, begin + 5 * way);
    pen.lineTo(left, end - 8 * way);
    pen.stroke();
    pen.globalAlpha = 1;
    pen.beginPath();
    pen.moveTo(left, end - 5 * way);
    pen.lineTo(left - 3, end - 10 * way);
    pen.lineTo(left + 3, end - 10 * way);
    pen.fill();
  }
}

function paintAxis(pen, view, x, perPixel) {
  const { colours } = view;
  pen.fillStyle = colours.surface;
  pen.fillRect(view.gutter, 0, view.width, AXIS_PX);
  pen.fillStyle = colours.line;
  pen.fillRect(0, AXIS_PX - 1, view.width, 1);
  pen.font = "11px system-ui, sans-serif";
  const { step, found } = ticks(view.scale, view.from, view.until, perPixel);
  const clock = step < 1000 ? CLOCKS.milli : step < 60_000 ? CLOCKS.second : CLOCKS.minute;
  let day = "", last = -Infinity;
  for (const { time, place } of found) {
    const left = Math.round(x(place)) + 0.5;
    const date = CLOCKS.day.format(time);
    const word = step >= 864e5 ? date : date === day ? clock.format(time) : `${date} ${clock.format(time)}`;
    if (left < last + 12) continue;
    last = left + 4 + pen.measureText(word).width;
    pen.fillStyle = colours.line;
    pen.fillRect(left, AXIS_PX - 7, 1, 6);
    pen.fillStyle = colours.muted;
    pen.fillText(word, left + 4, AXIS_PX / 2);
    day = date;
  }
  for (const piece of view.scale.pieces) {
    if (!piece.isGap || piece.until < view.from || piece.from > view.until) continue;
    const left = x(piece.from), wide = x(piece.until) - left;
    pen.fillStyle = colours.sunken;
    pen.fillRect(left, 0, wide, AXIS_PX - 1);
    pen.fillStyle = colours.muted;
    const word = spanText(piece.end - piece.begin).split(" ").slice(0, 2).join(" ");
    pen.textAlign = "center";
    if (wide > 34) pen.fillText(word, left + wide / 2, AXIS_PX / 2);
    pen.textAlign = "left";
  }
}

function paintGutter(pen, view) {
  const { colours, gutter, scroll } = view;
  pen.fillStyle = colours.surface;
  pen.fillRect(0, 0, gutter, view.height);
  pen.save();
  pen.beginPath();
  pen.rect(0, AXIS_PX, gutter, view.height - AXIS_PX);
  pen.clip();
  pen.font = "12.5px system-ui, sans-serif";
  for (const lane of view.model.lanes) {
    const top = lane.top + AXIS_PX - scroll;
    if (top + lane.height < 0 || top > view.height) continue;
    pen.fillStyle = colours.line;
    pen.fillRect(0, top + lane.height - 0.5, gutter, 1);
    pen.fillStyle = lane.agent ? colours.text : colours.muted;
    pen.fillText(cutTo(lane.agent || "the run", gutter - 16), 12, top + lane.height / 2);
  }
  pen.restore();
  pen.fillStyle = colours.line;
  pen.fillRect(gutter - 1, 0, 1, view.height);
  pen.fillRect(0, AXIS_PX - 1, gutter, 1);
}

export function paintMini(pen, view, bins) {
  const { colours, width, gutter } = view;
  const height = view.miniHeight, wide = width - gutter;
  pen.clearRect(0, 0, width, height);
  const most = Math.max(1, ...bins.all);
  const each = wide / bins.all.length;
  for (let at = 0; at < bins.all.length; at++) {
    if (!bins.all[at]) continue;
    const high = Math.max(2, Math.sqrt(bins.all[at] / most) * (height - 12));
    pen.fillStyle = colours["line-strong"];
    pen.fillRect(gutter + at * each, height - 4 - high, Math.max(each - 0.5, 1), high);
    if (!bins.bad[at]) continue;
    pen.fillStyle = colours.bad;
    pen.fillRect(gutter + at * each, height - 4 - Math.min(high, 5), Math.max(each - 0.5, 1),
      Math.min(high, 5));
  }
  const left = gutter + (view.from / view.scale.length) * wide, right = gutter +
    (view.until / view.scale.length) * wide;
  pen.fillStyle = colours.accent;
  pen.globalAlpha = 0.12;
  pen.fillRect(left, 0, right - left, height);
  pen.globalAlpha = 1;
  pen.fillRect(left, 0, 2, height);
  pen.fillRect(right - 2, 0, 2, height);
  pen.fillStyle = colours.muted;
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  pen.fillText("whole run", 12, height / 2);
}

/** Count checkpoints and failures in bins along the whole run. */
export function binsOf(model, scale, count = 240) {
  const all = new Uint32Array(count), bad = new Uint32Array(count);
  model.placeOf.forEach((place, at) => {
    const bin = Math.min(count - 1, Math.floor((place / scale.length) * count));
    all[bin]++;
    if (model.checkpoints.status[at] === "failed" || model.checkpoints.type[at] === "error_state") bad[bin]++;
  });
  return { all, bad };
}
