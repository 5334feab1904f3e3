// A layout for graphs that go from left to right: layers, each in the order that its neighbours suggest.

const COLUMN_GAP = 72;
const ROW_GAP = 14;
const MARGIN = 16;
const SWEEPS = 8;
// Lines around nodes are laid out like narrow nodes; with very many of them they go straight instead.
const BENDS_MAX = 4000;
const BEND_PX = 6;

/** Lay nodes {id, width, height} of one size out: places of their centres, and the points of each line. */
export function layered(nodes, edges) {
  const { width, height } = nodes[0];
  const numbers = new Map(nodes.map((node, at) => [node.id, at]));
  const lines = edges
    .map((edge, at) => ({ at, from: numbers.get(edge.source), until: numbers.get(edge.target) }))
    .filter(({ from, until }) => from !== undefined && until !== undefined && from !== until);
  const rank = Array.from(ranks(nodes.length, lines.map(({ from, until }) => [from, until])));
  const pairs = bend(lines, rank);
  const columns = ordered(pairs, rank);
  const high = (one) => (one < nodes.length ? height : BEND_PX);
  const y = heights(columns, pairs, high);
  const placeOf = (one) => ({ x: MARGIN + width / 2 + rank[one] * (width + COLUMN_GAP), y: y[one] });
  const places = Object.fromEntries(nodes.map((node, at) => [node.id, placeOf(at)]));
  // A line that passes a layer goes straight through it, and bends between the layers.
  const passing = (one) => [-0.5, 0.5].map((side) => ({ x: placeOf(one).x + side * width, y: y[one] }));
  const ways = lines.map(({ at, from, until, bends }) => (
    { at, points: [placeOf(from), ...bends.flatMap(passing), placeOf(until)] }));
  const lowest = Math.max(...nodes.map((_, at) => y[at]));
  const wide = columns.length * (width + COLUMN_GAP) - COLUMN_GAP + 2 * MARGIN;
  return { places, ways, width: wide, height: lowest + height / 2 + MARGIN };
}

/** The layer of each node: one more than the farthest before it. What closes a circle is passed over. */
function ranks(count, pairs) {
  const after = neighbours(count, pairs, 0);
  const open = new Int32Array(count), rank = new Int32Array(count), isDone = new Uint8Array(count);
  for (const [, until] of pairs) open[until]++;
  const ready = [];
  for (let one = 0; one < count; one++) if (!open[one]) ready.push(one);
  for (let at = 0, next = 0; at < ready.length || next < count; ) {
    if (at === ready.length) {
      if (!isDone[next]) ready.push(next);
      next++;
      continue;
    }
    const one = ready[at++];
    if (isDone[one]) continue;
    isDone[one] = 1;
    for (const other of after[one]) {
      if (isDone[other]) continue;
      rank[other] = Math.max(rank[other], rank[one] + 1);
      if (--open[other] === 0) ready.push(other);
    }
  }
  return rank;
}

/** Give each line that passes layers a bend in each of them; answer the pairs that are next to each other. */
function bend(lines, rank) {
  const pairs = [];
  const far = lines.reduce((sum, { from, until }) => sum + Math.max(0, rank[until] - rank[from] - 1), 0);
  for (const line of lines) {
    line.bends = [];
    if (rank[line.until] <= rank[line.from]) continue;
    let last = line.from;
    for (let layer = rank[line.from] + 1; far <= BENDS_MAX && layer < rank[line.until]; layer++) {
      const one = rank.push(layer) - 1;
      line.bends.push(one);
      pairs.push([last, one]);
      last = one;
    }
    pairs.push([last, line.until]);
  }
  return pairs;
}

function neighbours(count, pairs, side) {
  const found = Array.from({ length: count }, () => []);
  for (const pair of pairs) found[pair[side]].push(pair[1 - side]);
  return found;
}

function ordered(pairs, rank) {
  const columns = Array.from({ length: Math.max(...rank) + 1 }, () => []);
  rank.forEach((layer, one) => columns[layer].push(one));
  const before = neighbours(rank.length, pairs, 1), after = neighbours(rank.length, pairs, 0);
  const place = new Float64Array(rank.length);
  const note = (column) => column.forEach((one, at) => { place[one] = (at + 0.5) / column.length; });
  columns.forEach(note);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const near = sweep % 2 ? after : before;
    for (const column of sweep % 2 ? [...columns].reverse() : columns) {
      const wish = new Map(column.map((one) => [one, mean(near[one], place, place[one])]));
      column.sort((one, other) => wish.get(one) - wish.get(other));
      note(column);
    }
  }
  return columns;
}

function mean(others, place, otherwise) {
  return others.length ? others.reduce((sum, one) => sum + place[one], 0) / others.length : otherwise;
}

/** Put each node level with those before it, then with those after it, as far as there is room. */
function heights(columns, pairs, high) {
  const count = columns.reduce((sum, column) => sum + column.length, 0);
  const before = neighbours(count, pairs, 1), after = neighbours(count, pairs, 0);
  const y = new Float64Array(count);
  const settle = (column, near) => {
    const wish = column.map((one) => mean(near[one], y, y[one]));
    column.forEach((one, at) => {
      const above = column[at - 1];
      y[one] = at ? Math.max(wish[at], y[above] + (high(above) + high(one)) / 2 + ROW_GAP) : wish[0];
    });
    const shift = column.reduce((sum, one, at) => sum + y[one] - wish[at], 0) / column.length;
    for (const one of column) y[one] -= shift;
  };
  for (const column of columns) settle(column, before);
  for (const column of [...columns].reverse()) settle(column, after);
  for (const column of columns) settle(column, before);
  const least = columns.flat().reduce((low, one) => Math.min(low, y[one] - high(one) / 2), Infinity);
  return y.map((value) => value - least + MARGIN);
}
