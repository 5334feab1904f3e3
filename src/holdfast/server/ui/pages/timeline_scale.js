// Time as it is drawn: long times in which nothing happens are short, and marked.

const GAP_SHARE = 1 / 24;
const GAPS_SHARE = 0.3;
const GAPS_MAX = 12;
const GAP_MS_MIN = 1000;
const ROOM_SHARE = 0.012;
const STEPS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5,
  9e5, 18e5,
  36e5, 72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 2592e6];

/** Times in which something happens, as sorted [begin, end] that do not touch. */
function busy(timeline) {
  const found = [];
  for (const lane of timeline.lanes) for (const span of lane.spans) found.push([span.begin_ms, span.end_ms ??
    timeline.end_ms]);
  for (const time of timeline.checkpoints.time_ms) found.push([time, time]);
  for (const mark of timeline.marks) found.push([mark.time_ms, mark.time_ms]);
  for (const link of timeline.links) found.push([link.time_ms, link.time_ms]);
  found.push([timeline.begin_ms, timeline.begin_ms], [timeline.end_ms, timeline.end_ms]);
  found.sort((one, other) => one[0] - other[0]);
  return found;
}

/** Where nothing happens for long: [begin, end, length that is drawn] each. */
function gaps(timeline) {
  const idle = [];
  let until = timeline.begin_ms;
  for (const [begin, end] of busy(timeline)) {
    if (begin > until) idle.push([until, begin]);
    until = Math.max(until, end);
  }
  idle.sort((one, other) => other[1] - other[0] - (one[1] - one[0]));
  // As many of the longest are cut as stay long beside what they are drawn as.
  let rest = Math.max(1, timeline.end_ms - timeline.begin_ms);
  let count = 0, kept = 0;
  for (let nth = 1; nth <= Math.min(GAPS_MAX, idle.length); nth++) {
    const length = idle[nth - 1][1] - idle[nth - 1][0];
    rest -= length;
    const drawn = Math.max(rest * Math.min(GAP_SHARE, GAPS_SHARE / nth), 1);
    if (length >= GAP_MS_MIN && length > 3 * drawn) [count, kept] = [nth, drawn];
  }
  return idle.slice(0, count).sort((one, other) => one[0] - other[0]).map(([begin, end]) =>
    [begin, end, kept]);
}

/**
 * A map between times and places: pieces {begin, end, from, until, isGap}, of(time) and back(place).
 * Places run from 0 to `length`.
 */
export function scaleOf(timeline, isShortened) {
  const pieces = [];
  let time = timeline.begin_ms, at = 0;
  const add = (end, length, isGap) => {
    if (end <= time) return;
    pieces.push({ begin: time, end, from: at, until: at + length, isGap });
    time = end;
    at += length;
  };
  if (isShortened) {
    for (const [begin, end, length] of gaps(timeline)) {
      add(begin, begin - time, false);
      add(end, length, true);
    }
  }
  add(Math.max(timeline.end_ms, time + 1), Math.max(timeline.end_ms - time, 1), false);
  // A little room at both ends, so that what lies there is seen whole.
  const room = at * ROOM_SHARE;
  for (const piece of pieces) {
    piece.from += room;
    piece.until += room;
  }
  at += room;
  pieces.unshift({ begin: timeline.begin_ms - room, end: timeline.begin_ms, from: 0, until: room, isGap:
    false });
  add(time + room, room, false);
  const pick = (value, end) => {
    let low = 0, high = pieces.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pieces[middle][end] < value) low = middle + 1; else high = middle;
    }
    return pieces[low];
  };
  return {
    pieces,
    length: at,
    of(value) {
      const piece = pick(value, "end");
      return piece.from + ((value - piece.begin) / (piece.end - piece.begin)) * (piece.until - piece.from);
    },
    back(place) {
      const piece = pick(place, "until");
      return piece.begin + ((place - piece.from) / (piece.until - piece.from)) * (piece.end - piece.begin);
    },
  };
}

/** Times to be written at the axis between two places, about `apart` pixels from each other. */
export function ticks(scale, from, until, perPixel, apart = 104) {
  const step = STEPS_MS.find((ms) => ms >= perPixel * apart) || STEPS_MS.at(-1);
  const shift = new Date(scale.pieces[0].begin).getTimezoneOffset() * 60_000;
  const found = [];
  const room = perPixel * apart * 0.85;
  const add = (time, piece) => {
    const place = scale.of(time);
    // None is written where the next gap would cover it.
    if (place + room <= piece.until &&
      (!found.length || place - found.at(-1).place >= room)) found.push({ time, place });
  };
  for (const piece of scale.pieces) {
    if (piece.isGap || piece.until < from || piece.from > until) continue;
    const begin = scale.back(Math.max(from, piece.from)), end = scale.back(Math.min(until, piece.until));
    const before = found.length;
    for (let time = Math.ceil((begin - shift) / step) * step + shift; time <= end; time += step) add(time,
      piece);
    if (found.length === before && piece.from >= from) add(piece.begin, piece);
  }
  return { step, found };
}
