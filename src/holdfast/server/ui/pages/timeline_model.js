// A timeline made ready to be drawn and pointed at: per lane, typed arrays in the order of time.

export const AXIS_PX = 28;
const SPAN_PX = 12;
const ROWS_MAX = 3;

/** Lanes with what lies in them. Whatever belongs to no agent is in a lane of its own, the first. */
export function modelOf(timeline, scale) {
  const { checkpoints } = timeline;
  const isLoose = (lane) => lane === null || lane === undefined || lane < 0 || lane >= timeline.lanes.length;
  const byName = new Map(timeline.lanes.map((lane, at) => [lane.agent, at]));
  const needsOwn = checkpoints.lane.some(isLoose) || timeline.marks.some((mark) => !byName.has(mark.agent))
    || !timeline.lanes.length;
  const first = needsOwn ? 1 : 0;
  const lanes = [...(needsOwn ? [{ agent: "", spans: [] }] : []),
    ...timeline.lanes].map(laneOf(scale, timeline.end_ms));
  const laneAt = (lane) => lanes[isLoose(lane) ? 0 : lane + first];
  checkpoints.sequence.forEach((sequence, at) => laneAt(checkpoints.lane[at]).dots.push(at));
  const placeOf = Float64Array.from(checkpoints.time_ms, (time) => scale.of(time));
  for (const lane of lanes) lane.dots.sort((one, other) => placeOf[one] - placeOf[other]);
  for (const mark of timeline.marks) {
    const lane = laneAt(byName.has(mark.agent) ? byName.get(mark.agent) : -1);
    lane.marks.push({ mark, place: scale.of(mark.time_ms) });
  }
  const links = timeline.links.map((link) =>
    ({ link, place: scale.of(link.time_ms), from: laneAt(link.from_lane), until: laneAt(link.to_lane) }));
  let top = 0;
  for (const lane of lanes) {
    lane.top = top;
    lane.height = 12 + lane.rows * (SPAN_PX + 2) + 16;
    top += lane.height;
  }
  return { lanes, links, placeOf, height: top, checkpoints, workflow_id: timeline.workflow_id };
}

function laneOf(scale, end_ms) {
  return (lane) => {
    const sorted = [...lane.spans].sort((one, other) => one.begin_ms - other.begin_ms);
    const ends = [];
    const spans = sorted.map((span) => {
      const end = span.end_ms ?? end_ms;
      // Spans at the same time lie below each other, as far as there is room.
      let row = ends.findIndex((until) => until <= span.begin_ms);
      if (row < 0) row = ends.length < ROWS_MAX ? ends.length : ROWS_MAX - 1;
      ends[row] = end;
      return { span, row, from: scale.of(span.begin_ms), until: scale.of(end) };
    });
    return { agent: lane.agent, spans, rows: Math.max(1, ends.length), dots: [], marks: [], top: 0, height:
      0 };
  };
}

export function spanTop(lane, row) {
  return lane.top + 8 + row * (SPAN_PX + 2);
}

export function spanHeight() {
  return SPAN_PX;
}

export function dotTop(lane) {
  return lane.top + lane.height - 10;
}

/** Position of the first of `count` whose value is not below a limit. */
export function firstAt(count, valueOf, limit) {
  let low = 0, high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (valueOf(middle) < limit) low = middle + 1; else high = middle;
  }
  return low;
}

/**
 * What lies under a point: {kind: "checkpoint" | "mark" | "link" | "span", ...}; null if nothing does.
 * `place` and `reach` are places of the scale, `y` is pixels below the axis.
 */
export function under(model, place, y, reach) {
  const lane = model.lanes.find((one) => y >= one.top && y < one.top + one.height);
  if (!lane) return null;
  const dot = nearest(lane.dots.length, (at) => model.placeOf[lane.dots[at]], place, reach);
  if (dot >= 0 && y > dotTop(lane) - 9) return { kind: "checkpoint", at: lane.dots[dot], lane };
  const mark = nearest(lane.marks.length, (at) => lane.marks[at].place, place, reach);
  if (mark >= 0 && y < lane.top + 10) return { kind: "mark", mark: lane.marks[mark].mark, lane };
  const span = lane.spans.findLast((one) => place >= one.from - reach / 3 && place <= one.until + reach / 3 &&
    y >= spanTop(lane, one.row) - 1 && y <= spanTop(lane, one.row) + SPAN_PX + 1);
  if (span) return { kind: "span", span: span.span, lane };
  const link = model.links.find((one) => Math.abs(one.place - place) < reach / 2 &&
    lane.top >= Math.min(one.from.top, one.until.top) && lane.top <= Math.max(one.from.top, one.until.top));
  if (link) return { kind: "link", link: link.link, lane, from: link.from, until: link.until };
  return dot >= 0 ? { kind: "checkpoint", at: lane.dots[dot], lane } : null;
}

function nearest(count, valueOf, place, reach) {
  const at = firstAt(count, valueOf, place);
  let best = -1, distance = reach;
  for (const one of [at - 1, at]) {
    if (one < 0 || one >= count) continue;
    const found = Math.abs(valueOf(one) - place);
    if (found <= distance) { best = one; distance = found; }
  }
  return best;
}
