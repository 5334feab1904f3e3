// The timeline of a run: a lane for each agent, steps as bars, checkpoints as dots, messages as arrows.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { path, useGet } from "../api.js";
import { useKeys } from "../keys.js";
import { Behind, Button, Empty, Loaded, Span, Status, Table, Tabs, Term, Time, quoted, rangeText, short,
  spanText, timeText } from "../parts.js";
import { go, to } from "../router.js";
import { AXIS_PX, modelOf, under } from "./timeline_model.js";
import { binsOf, fit, paint, paintMini, palette } from "./timeline_paint.js";
import { scaleOf } from "./timeline_scale.js";

const MINI_PX = 44;
const MS_MIN = 5;
const REACH_PX = 8;
const STEP = 1.6;

export default function Timeline({ id }) {
  const timeline = useGet(path`/runs/${id}/timeline`, { live: (event) => event.workflow_id === id });
  return html`<${Loaded} of=${timeline} lines=${8}>${(data) =>
    (data.begin_ms !== null && (data.checkpoints.sequence.length || data.lanes.length || data.marks.length)
    ? html`${data.is_cut ? html`<p
    class="muted">It is longer than what can be drawn: the newest part is shown.</p>` : null}<${Drawn}
      data=${data} id=${id} />`
    : html`<${Empty} title="Nothing has happened yet"
    text="Steps and checkpoints appear here as the run makes them." command=${`holdfast watch ${quoted(id)}`}
      />`)}</${Loaded}>`;
}

/** What is seen of the whole: places from and until; everything that moves it ends here. */
function useWindow(scale) {
  const [view, setView] = useState({ from: 0, until: scale.length });
  const before = useRef(scale);
  const bounded = (from, until) => {
    const length = Math.min(scale.length, Math.max(until - from, Math.min(MS_MIN, scale.length)));
    const begin = Math.max(0, Math.min(from, scale.length - length));
    return { from: begin, until: begin + length };
  };
  useLayoutEffect(() => {
    const old = before.current;
    before.current = scale;
    if (old === scale) return;
    setView((seen) => {
      if (seen.until - seen.from >= old.length * 0.999) return { from: 0, until: scale.length };
      // Whoever looks at the newest goes on looking at the newest.
      if (seen.until >= old.length * 0.999) return bounded(scale.length - (seen.until - seen.from),
        scale.length);
      return bounded(scale.of(old.back(seen.from)), scale.of(old.back(seen.until)));
    });
  }, [scale]);
  return {
    ...(view.until > scale.length ? bounded(view.from, view.until) : view),
    show: (from, until) => setView(bounded(from, until)),
    zoom: (by, around) => setView((seen) => {
      const centre = around ?? (seen.from + seen.until) / 2;
      return bounded(centre - (centre - seen.from) / by, centre + (seen.until - centre) / by);
    }),
    pan: (places) => setView((seen) => bounded(seen.from + places, seen.until + places)),
    panShare: (share) => setView((seen) =>
      bounded(seen.from + share * (seen.until - seen.from), seen.until + share * (seen.until - seen.from))),
  };
}

function useSize(box) {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    setWidth(box.current.clientWidth);
    const watcher = new ResizeObserver(() => box.current && setWidth(box.current.clientWidth));
    watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  return width;
}

function usePalette() {
  const [colours, setColours] = useState(palette);
  useEffect(() => {
    const again = () => setColours(palette());
    const system = matchMedia("(prefers-color-scheme: dark)");
    addEventListener("themechange", again);
    system.addEventListener("change", again);
    return () => { removeEventListener("themechange", again); system.removeEventListener("change", again); };
  }, []);
  return colours;
}

function Drawn({ data, id }) {
  const [isShortened, setShortened] = useState(true);
  const scale = useMemo(() => scaleOf(data, isShortened), [data, isShortened]);
  const model = useMemo(() => modelOf(data, scale), [data, scale]);
  const bins = useMemo(() => binsOf(model, scale), [model, scale]);
  const seen = useWindow(scale);
  const colours = usePalette();
  const box = useRef(null), canvas = useRef(null), mini = useRef(null), scroller = useRef(null);
  const [scroll, setScroll] = useState(0);
  const [over, setOver] = useState(null);
  const [selected, setSelected] = useState(null);
  const [isReady, setReady] = useState(false);
  const width = useSize(box);
  const gutter = width < 600 ? 84 : 148;
  const height = Math.min(model.height + AXIS_PX, Math.max(240, Math.round(innerHeight * 0.6)));
  const perPixel = (seen.until - seen.from) / Math.max(1, width - gutter);
  const placeAt = (x) => seen.from + (x - gutter) * perPixel;
  const view = { model, scale, from: seen.from, until: seen.until, width, height, gutter, scroll, selected,
    colours, miniHeight: MINI_PX };

  useLayoutEffect(() => {
    if (!width) return undefined;
    const frame = requestAnimationFrame(() => {
      paint(fit(canvas.current, width, height), view);
      paintMini(fit(mini.current, width, MINI_PX), view, bins);
      if (!isReady) {
        performance.mark("timeline-ready");
        setReady(true);
      }
    });
    return () => cancelAnimationFrame(frame);
  }, [model, bins, seen.from, seen.until, width, height, scroll, selected, colours]);

  const open = (found) => {
    if (!found) return;
    if (found.kind === "checkpoint") go(to.checkpoint(`${id}@${model.checkpoints.sequence[found.at]}`));
    else go(to.run(id, "events", { after: (found.mark || found.span || found.link).event_seq }));
  };
  const choose = (by) => {
    const count = model.checkpoints.sequence.length;
    if (!count) return;
    const at = selected === null ? (by > 0 ? firstSeen(model, seen.from) : count - 1) :
      Math.max(0, Math.min(count - 1, selected + by));
    const place = model.placeOf[at];
    setSelected(at);
    if (place < seen.from || place > seen.until) seen.show(place - (seen.until - seen.from) / 2, place +
      (seen.until - seen.from) / 2);
  };
  const sequence = selected === null ? null : model.checkpoints.sequence[selected];
  useKeys({
    "+": () => seen.zoom(STEP), "=": () => seen.zoom(STEP), "-": () => seen.zoom(1 / STEP), 0: () =>
      seen.show(0, scale.length),
    ArrowLeft: (event) => event.target.role !== "tab" && seen.panShare(-0.2), ArrowRight: (event) =>
      event.target.role !== "tab" && seen.panShare(0.2),
    "]": () => choose(1), "[": () => choose(-1),
    Enter: (event) => (selected === null || event.target.closest?.("a, button, summary") ? false :
      open({ kind: "checkpoint", at: selected })),
    d: () => (selected > 0 ? go(to.diff(`${id}@${model.checkpoints.sequence[selected - 1]}`,
      `${id}@${sequence}`)) : false),
  });
  const pointing = usePointing({ canvas, seen, gutter, perPixel, placeAt, find: (x, y) =>
    under(model, placeAt(x), y - AXIS_PX + scroll, REACH_PX * perPixel), setOver, open });
  useWheel(canvas, seen, placeAt, perPixel);
  const dragMini = useMiniDrag({ seen, scale, gutter, width });
  const { length } = model.checkpoints.sequence;
  const about = `Timeline of ${length} checkpoints in ${model.lanes.length} lanes; `
    + "the keys [ and ] choose a checkpoint, Enter opens it; tables are below";
  const said = selected === null ? "" :
    `Checkpoint ${sequence}, ${model.checkpoints.type[selected].replaceAll("_",
      " ")}, ${model.checkpoints.status[selected]}, ${timeText(model.checkpoints.time_ms[selected])}`;

  return html`<div class="stack">
    <div class="timeline" ref=${box} data-testid="timeline" data-ready=${isReady ? "true" : null}
      data-from=${Math.round(scale.back(seen.from))} data-until=${Math.round(scale.back(seen.until))}
      data-checkpoints=${model.checkpoints.sequence.length} data-lanes=${model.lanes.length}
        data-selected=${sequence}>
      <${Tools} seen=${seen} scale=${scale} choose=${choose} isShortened=${isShortened}
        setShortened=${setShortened} />
      <div class="timeline-view" ref=${scroller} style=${{ height: `${height}px` }} onScroll=${(event) =>
        setScroll(event.currentTarget.scrollTop)}>
        <canvas ref=${canvas} class=${over ? "over" : ""} tabindex="0" role="application"
          aria-roledescription="timeline"
            aria-label=${about} ...${pointing}></canvas>
        <div style=${{ height: `${Math.max(0, model.height + AXIS_PX - height)}px` }}></div>
      </div>
      <canvas class="mini" ref=${mini} data-testid="minimap" role="img"
        aria-label="The whole run, small; drag to move what is seen" ...${dragMini}></canvas>
      ${over ? html`<${Hover} over=${over} model=${model} width=${width} />` : null}
    </div>
    <p class="row" role="status">${said ? html`<span>${said}</span>
      <a href=${to.checkpoint(`${id}@${sequence}`)}>Open</a>` : null}</p>
    <${Legend} />
    <${Behind} label="Show as tables"><${Tables} data=${data} id=${id} model=${model} /></${Behind}>
  </div>`;
}

function firstSeen(model, from) {
  const at = model.placeOf.findIndex((place) => place >= from);
  return at < 0 ? 0 : at;
}

function usePointing({ canvas, seen, gutter, perPixel, placeAt, find, setOver, open }) {
  const pointers = useRef(new Map());
  const moved = useRef(0);
  const place = (event) => {
    const edge = canvas.current.getBoundingClientRect();
    return [event.clientX - edge.left, event.clientY - edge.top];
  };
  const pinch = (event) => {
    const [one, other] = [...pointers.current.values()];
    const before = Math.abs(one.x - other.x) || 1;
    pointers.current.set(event.pointerId, { x: place(event)[0] });
    const [now, beside] = [...pointers.current.values()];
    seen.zoom((Math.abs(now.x - beside.x) || 1) / before, placeAt((now.x + beside.x) / 2));
  };
  return {
    onPointerDown: (event) => {
      const [x] = place(event);
      if (x < gutter || event.button) return;
      pointers.current.set(event.pointerId, { x });
      moved.current = 0;
      canvas.current.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event) => {
      const [x, y] = place(event);
      const held = pointers.current.get(event.pointerId);
      if (pointers.current.size === 2 && held) { moved.current = 99; pinch(event); return; }
      if (held) {
        seen.pan((held.x - x) * perPixel);
        moved.current += Math.abs(held.x - x);
        held.x = x;
        canvas.current.classList.add("dragging");
        if (moved.current > 3) setOver(null);
        return;
      }
      const found = x > gutter && y > AXIS_PX ? find(x, y) : null;
      setOver(found ? { ...found, x, y: y +
        canvas.current.offsetTop - canvas.current.parentElement.scrollTop +
          canvas.current.parentElement.offsetTop } : null);
    },
    onPointerUp: (event) => {
      const [x, y] = place(event);
      const wasHeld = pointers.current.delete(event.pointerId);
      canvas.current.classList.remove("dragging");
      if (wasHeld && moved.current <= 3) open(find(x, y));
    },
    onPointerCancel: (event) => pointers.current.delete(event.pointerId),
    onPointerLeave: () => setOver(null),
    onDblClick: (event) => seen.zoom(3, placeAt(place(event)[0])),
  };
}

/** The wheel: with Ctrl (or a pinch) closer and further, sideways or with Shift earlier and later. */
function useWheel(canvas, seen, placeAt, perPixel) {
  const latest = useRef(null);
  latest.current = (event) => {
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      seen.zoom(Math.exp(-event.deltaY / 300),
        placeAt(event.clientX - canvas.current.getBoundingClientRect().left));
    } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      seen.pan(sideways * perPixel);
    } else {
      return;
    }
    event.preventDefault();
  };
  useEffect(() => {
    const hear = (event) => latest.current(event);
    const node = canvas.current;
    node.addEventListener("wheel", hear, { passive: false });
    return () => node.removeEventListener("wheel", hear);
  }, []);
}

function useMiniDrag({ seen, scale, gutter, width }) {
  const held = useRef(null);
  const placeOf = (event) => {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
    return ((x - gutter) / Math.max(1, width - gutter)) * scale.length;
  };
  const near = (scale.length * 6) / Math.max(1, width - gutter);
  return {
    onPointerDown: (event) => {
      const place = placeOf(event), half = (seen.until - seen.from) / 2;
      event.currentTarget.setPointerCapture(event.pointerId);
      if (Math.abs(place - seen.from) < near) held.current = { edge: "from" };
      else if (Math.abs(place - seen.until) < near) held.current = { edge: "until" };
      else {
        const isInside = place > seen.from && place < seen.until && half * 2 < scale.length * 0.999;
        held.current = isInside ? { by: place - seen.from } : { begin: place };
        if (!isInside && half * 2 < scale.length * 0.999) { seen.show(place - half, place + half);
          held.current = { by: half }; }
      }
    },
    onPointerMove: (event) => {
      if (!held.current) return;
      const place = placeOf(event), { edge, by, begin } = held.current;
      if (edge === "from") seen.show(Math.min(place, seen.until - 1), seen.until);
      else if (edge === "until") seen.show(seen.from, Math.max(place, seen.from + 1));
      else if (begin !== undefined) { if (Math.abs(place - begin) > near) seen.show(Math.min(begin, place),
        Math.max(begin, place)); }
      else seen.show(place - by, place - by + (seen.until - seen.from));
    },
    onPointerUp: () => { held.current = null; },
    onPointerCancel: () => { held.current = null; },
  };
}

function Tools({ seen, scale, choose, isShortened, setShortened }) {
  const range = rangeText(scale.back(seen.from), scale.back(seen.until));
  return html`<div class="timeline-tools" role="toolbar" aria-label="Timeline">
    <${Button} onClick=${() => seen.zoom(STEP)} aria-label="Zoom in" title="Zoom in (+)">+</${Button}>
    <${Button} onClick=${() => seen.zoom(1 / STEP)} aria-label="Zoom out" title="Zoom out (-)">−</${Button}>
    <${Button} onClick=${() => seen.show(0, scale.length)} title="Show the whole run (0)">All</${Button}>
    <${Button} icon="left" onClick=${() => seen.panShare(-0.4)} aria-label="Earlier" title="Earlier (←)" />
    <${Button} icon="right" onClick=${() => seen.panShare(0.4)} aria-label="Later" title="Later (→)" />
    <${Button} icon="before" onClick=${() => choose(-1)} aria-label="Previous checkpoint"
      title="Previous checkpoint ([)" />
    <${Button} icon="after" onClick=${() => choose(1)} aria-label="Next checkpoint"
      title="Next checkpoint (])" />
    <label class="choice"><input type="checkbox" checked=${isShortened} onChange=${(event) =>
      setShortened(event.currentTarget.checked)} />Shorten idle times</label><${Term} word="shorten idle times" />
    <span class="muted num grow" data-testid="seen">${range}</span>
  </div>`;
}

function Hover({ over, model, width }) {
  const isLeft = over.x > width / 2;
  const style = { top: `${over.y + 14}px`,
    ...(isLeft ? { right: `${width - over.x + 8}px` } : { left: `${over.x + 12}px` }) };
  return html`<div class="hover" style=${style} data-testid="hover">${HOVER[over.kind](over, model)}</div>`;
}

const HOVER = {
  checkpoint: ({ at }, { checkpoints }) => html`<strong>Checkpoint @${checkpoints.sequence[at]}</strong>
    <span>${checkpoints.type[at].replaceAll("_", " ")} · ${checkpoints.status[at]}</span>
    ${checkpoints.label[at] ? html`<span>Label: ${short(checkpoints.label[at], 80)}</span>` : null}
    <span class="muted">${timeText(checkpoints.time_ms[at])} · click opens it</span>`,
  span: ({ span, lane }) => html`<strong>${short(span.step, 80)}</strong>
    <span>${span.status}${span.attempt > 1 ? ` · attempt ${span.attempt}` : ""} · ${span.end_ms ?
      spanText(span.end_ms - span.begin_ms) : "not ended"}</span>
    <span class="muted">${lane.agent ||
      "the run"} · ${timeText(span.begin_ms)} · click shows its events</span>`,
  mark: ({ mark }) => html`<strong>${mark.type.replaceAll("_", " ")}</strong>${mark.text ?
    html`<span>${short(mark.text, 200)}</span>` : null}
    <span class="muted">${timeText(mark.time_ms)} · click shows the event</span>`,
  link: ({ link, from, until }) =>
    html`<strong>Message</strong><span>${from.agent || "the run"} to ${until.agent || "the run"}</span>
    <span class="muted">${timeText(link.time_ms)} · click shows the event</span>`,
};

function Legend() {
  return html`<div class="legend" aria-label="Legend" role="note">
    <span><i class="swatch dot info"></i>checkpoint (ring: labelled)</span><span><i
      class="swatch lines info"></i>checkpoints close together (lines)</span><span><i
      class="swatch square bad"></i>checkpoint of a failure (square)</span>
    <span><i class="swatch ok"></i>step completed</span><span><i
      class="swatch bad"></i>step failed (×)</span><span><i
      class="swatch bar bad"></i>step too short to see, or cut off by a kill (bar)</span><span><i
      class="swatch violet"></i>stopped</span><span><i class="swatch info"></i>running</span>
    <span><i class="swatch triangle violet"></i>event (triangle)</span><span><i
      class="swatch tick quiet"></i>message (arrow)</span>
    <span>Drag to move, Ctrl and wheel or double click to zoom</span></div>`;
}

const STEPS = [
  { key: "step", label: "Step", render: (row) => short(row.step, 60) },
  { key: "agent", label: "Agent" },
  { key: "status", label: "Status", render: (row) => html`<${Status} value=${row.status} />` },
  { key: "attempt", label: "Attempt", align: "right" },
  { key: "begin_ms", label: "Began", render: (row) => html`<${Time} at=${row.begin_ms} />` },
  { key: "took", label: "Took", align: "right", render: (row) =>
    html`<${Span} ms=${row.end_ms ? row.end_ms - row.begin_ms : null} />` },
];

const DOTS = [
  { key: "sequence", label: "#", render: (row) =>
    html`<a href=${to.checkpoint(`${row.id}@${row.sequence}`)}>@${row.sequence}</a>` },
  { key: "time", label: "Taken", render: (row) => html`<${Time} at=${row.time} />` },
  { key: "agent", label: "Agent" },
  { key: "type", label: "At", render: (row) => row.type.replaceAll("_", " ") },
  { key: "status", label: "Status", render: (row) => html`<${Status} value=${row.status} />` },
  { key: "label", label: "Label", render: (row) => short(row.label || "", 60) },
];

function Tables({ data, id, model }) {
  const [which, setWhich] = useState("checkpoints");
  const steps = useMemo(() => data.lanes.flatMap((lane) =>
    lane.spans.map((span) => ({ ...span, agent: lane.agent }))).sort((one, other) =>
      one.begin_ms - other.begin_ms), [data]);
  const dots = useMemo(() => {
    const { sequence, time_ms, type, status, label, lane } = data.checkpoints;
    return sequence.map((number, at) =>
      ({ id, sequence: number, time: time_ms[at], type: type[at], status: status[at], label: label[at],
        agent: data.lanes[lane[at]]?.agent || "–" }));
  }, [data]);
  const tabs = [{ id: "checkpoints", label: "Checkpoints", count: dots.length },
    { id: "steps", label: "Steps", count: steps.length }];
  return html`<${Tabs} label="Tables of the timeline" tabs=${tabs} current=${which}
    onChange=${setWhich}>${which === "steps"
    ? html`<${Table} label="Steps" columns=${STEPS} rows=${steps} keyOf=${(row) => `${row.event_seq}`}
    height="480px" href=${(row) => to.run(id, "events", { after: row.event_seq })} />`
    : html`<${Table} label="Checkpoints" columns=${DOTS} rows=${dots} keyOf=${(row) => row.sequence}
    height="480px" href=${(row) => to.checkpoint(`${id}@${row.sequence}`)} />`}</${Tabs}>`;
}
