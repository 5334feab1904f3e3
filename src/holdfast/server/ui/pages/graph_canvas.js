// A graph that is laid out, drawn as SVG: moved by dragging, zoomed by the wheel, walked by the arrow keys.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { Button, iconPath, short, toneOf } from "../parts.js";

const BRANCHES = 6;
const SCALE_MIN = 0.05;
const SCALE_MAX = 2;
const STEP = 1.4;
const READABLE = 0.8;
const READABLE_AT_ALL = 0.55;
const NOW = ["failed", "waiting", "running", "started", "planned"];

export function Canvas({ laid, nodes, edges, size, label, name, isLow, selected, onSelect, onOpen }) {
  const box = useRef(null);
  const [view, setView] = useState(null);
  const branches = useMemo(() =>
    new Map([...new Set(nodes.map((node) => node.branch))].map((branch, at) => [branch, at % BRANCHES])),
      [nodes]);
  const planned = useMemo(() => new Set(nodes.filter((node) => node.is_planned).map((node) => node.id)),
    [nodes]);
  const whole = () => fitted(box.current, laid);
  useLayoutEffect(() => {
    setView(firstView(box.current, laid, nodes, selected));
    performance.mark("graph-ready");
  }, [laid]);
  const zoom = (by, x = box.current.clientWidth / 2, y = box.current.clientHeight / 2) => setView((old) => {
    const scale = Math.max(SCALE_MIN, Math.min(SCALE_MAX, old.scale * by));
    return { scale, x: x - ((x - old.x) * scale) / old.scale, y: y - ((y - old.y) * scale) / old.scale };
  });
  const drag = useDrag(setView);
  useWheel(box, zoom);
  const walk = useWalk({ laid, nodes, selected, onSelect, onOpen, box, setView });
  const away = view ? nodes.filter((node) => !isSeen(view, laid.places[node.id], box.current)).length : 0;
  const height = `min(${isLow ? 40 : 64}vh, ${Math.max(isLow ? 160 : 280, Math.round(laid.height) + 64)}px)`;
  return html`<div class="graph" ref=${box} data-testid=${`graph-${name}`} data-ready=${view ? "true" : null}
    data-nodes=${nodes.length} data-edges=${laid.ways.length} style=${{ height }}>
    ${view ? html`<svg role="group" aria-label=${label} ...${drag} onKeyDown=${walk}><defs><marker
      id=${`tip-${name}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
        orient="auto"><path d="M0 0 8 4 0 8z" class="tip" /></marker></defs>
      <g transform=${`translate(${view.x} ${view.y}) scale(${view.scale})`}>
        ${laid.ways.map((way) => html`<${Edge} way=${way} edge=${edges[way.at]} places=${laid.places}
          planned=${planned} size=${size} name=${name} />`)}
        ${nodes.map((node, at) => html`<${Node} key=${node.id} node=${node} place=${laid.places[node.id]}
          size=${size} branch=${branches.get(node.branch)} isSelected=${node.id === selected}
          isStop=${selected ? node.id === selected : at === 0} onOpen=${onOpen} />`)}
      </g></svg>` : null}
    <div class="graph-tools">${away ? html`<span class="muted" data-testid=${`away-${name}`}>${away} of
      ${" "}${nodes.length} outside</span>` : null}<${Button} onClick=${() => zoom(STEP)}
      aria-label="Zoom in">+</${Button}><${Button} onClick=${() => zoom(1 / STEP)}
        aria-label="Zoom out">−</${Button}><${Button} onClick=${() => setView(whole())}>All</${Button}></div>
  </div>`;
}

/** How all of it is seen. */
function fitted(box, laid) {
  const wide = box.clientWidth, high = box.clientHeight;
  const scale = Math.max(SCALE_MIN, Math.min(1, wide / laid.width, high / laid.height));
  return { scale, x: Math.max(0, (wide - laid.width * scale) / 2), y:
    Math.max(0, (high - laid.height * scale) / 2) };
}

/** How it is seen first: all of it if that can be read; else where it stands now. */
function firstView(box, laid, nodes, selected) {
  const all = fitted(box, laid);
  if (all.scale >= READABLE_AT_ALL) return all;
  const node = nodes.find((one) => one.id === selected) ||
    NOW.map((status) => nodes.find((one) => one.status === status)).find(Boolean) || nodes[0];
  const place = laid.places[node.id];
  const at = (middle, room, whole) =>
    Math.min(16, Math.max(room - whole * READABLE - 16, room / 2 - middle * READABLE));
  return { scale: READABLE, x: at(place.x, box.clientWidth, laid.width), y:
    at(place.y, box.clientHeight, laid.height) };
}

function useDrag(setView) {
  const held = useRef(null);
  const end = (event) => { held.current = null; event.currentTarget.classList.remove("dragging"); };
  return {
    onPointerDown: (event) => { if (!event.button) held.current =
      { x: event.clientX, y: event.clientY, isFar: false }; },
    onPointerMove: (event) => {
      const from = held.current;
      if (!from) return;
      const x = event.clientX - from.x, y = event.clientY - from.y;
      if (!from.isFar && Math.abs(x) + Math.abs(y) < 4) return;
      if (!from.isFar) event.currentTarget.setPointerCapture(event.pointerId);
      held.current = { x: event.clientX, y: event.clientY, isFar: true };
      event.currentTarget.classList.add("dragging");
      setView((old) => ({ ...old, x: old.x + x, y: old.y + y }));
    },
    onPointerUp: end,
    onPointerCancel: end,
  };
}

function useWheel(box, zoom) {
  const latest = useRef(zoom);
  latest.current = zoom;
  useEffect(() => {
    const node = box.current;
    const hear = (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const edge = node.getBoundingClientRect();
      latest.current(Math.exp(-event.deltaY / 300), event.clientX - edge.left, event.clientY - edge.top);
    };
    node.addEventListener("wheel", hear, { passive: false });
    return () => node.removeEventListener("wheel", hear);
  }, []);
}

/** The arrow keys go to the nearest node in that direction; Enter opens it. */
function useWalk({ laid, nodes, selected, onSelect, onOpen, box, setView }) {
  return (event) => {
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    const current = event.target.closest("[data-node]")?.dataset.node ?? selected;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (current) onOpen(current);
    }
    if (!way || !current || !laid.places[current]) return;
    event.preventDefault();
    event.stopPropagation();
    const from = laid.places[current];
    let best = null, least = Infinity;
    for (const node of nodes) {
      const place = laid.places[node.id];
      const along = (place.x - from.x) * way[0] + (place.y - from.y) * way[1];
      const aside = Math.abs((place.x - from.x) * way[1]) + Math.abs((place.y - from.y) * way[0]);
      if (along > 1 && along + 2 * aside < least) { best = node.id; least = along + 2 * aside; }
    }
    if (!best) return;
    onSelect(best);
    box.current.querySelector(`[data-node="${CSS.escape(best)}"]`)?.focus({ preventScroll: true });
    setView((old) => reveal(old, laid.places[best], box.current));
  };
}

/** Whether the middle of a node is in view, and so far from its edges. */
function isSeen(view, place, box, wide = 0, high = 0) {
  const x = place.x * view.scale + view.x, y = place.y * view.scale + view.y;
  return x > wide && x < box.clientWidth - wide && y > high && y < box.clientHeight - high;
}

function reveal(view, place, box) {
  return isSeen(view, place, box, 40, 24) ? view : { ...view, x: box.clientWidth / 2 - place.x * view.scale, y:
    box.clientHeight / 2 - place.y * view.scale };
}

/** A line from the right side of a node to the left side of the next, bent where it passes between others. */
function lineOf(points, from, until, size) {
  const begin = { x: from.x + size.width / 2, y: from.y }, end =
    { x: until.x - size.width / 2 - 2, y: until.y };
  if (end.x <= begin.x) return `M${points.map((point) => `${point.x} ${point.y}`).join("L")}`;
  const all = [begin, ...points.slice(1, -1).filter((point) => point.x > begin.x + 8 && point.x < end.x - 8),
    end];
  return all.reduce((line, point, at) => {
    if (!at) return `M${point.x} ${point.y}`;
    const middle = (all[at - 1].x + point.x) / 2;
    return `${line}C${middle} ${all[at - 1].y} ${middle} ${point.y} ${point.x} ${point.y}`;
  }, "");
}

function Edge({ way, edge, places, planned, size, name }) {
  const from = places[edge.source], until = places[edge.target];
  return html`<path class="edge ${planned.has(edge.target) ? "ghost" : ""} ${edge.kind}"
    d=${lineOf(way.points, from, until, size)} marker-end=${`url(#tip-${name})`} />
    ${edge.label ? html`<text class="edge-label" x=${(from.x + until.x) / 2} y=${(from.y + until.y) / 2 - 6}
      text-anchor="middle">${short(edge.label, 14)}</text>` : null}`;
}

function Node({ node, place, size, branch, isSelected, isStop, onOpen }) {
  const left = place.x - size.width / 2, top = place.y - size.height / 2, tone = toneOf(node.status);
  return html`<g class="node ${node.is_planned ? "ghost" : ""} ${isSelected ? "selected" : ""}"
    transform=${`translate(${left} ${top})`} data-node=${node.id} data-status=${node.status}
    role="button" tabindex=${isStop ? 0 : -1} aria-pressed=${isSelected ? "true" : "false"}
      aria-label=${`${node.label}, ${node.status}`} onClick=${() => onOpen(node.id)}>
    <title>${`${node.label}\n${node.status}, ${node.kind}`}</title>
    <rect width=${size.width} height=${size.height} rx="6" /><rect class="stripe" width="4"
      height=${size.height - 12} x="0" y="6" rx="2" style=${{ fill: `var(--branch-${branch})` }} />
    <text x="14" y="19">${short(node.label, 25)}</text>
    <g class="state" style=${{ color: `var(--${tone})` }}><path transform="translate(12 26) scale(0.85)"
      d=${iconPath(node.status)} /><text x="29" y="36.500">${node.status}${node.kind === "step" ||
        node.kind === "run" ? "" : ` · ${short(node.kind, 12)}`}</text></g></g>`;
}
