// Tables: real ones, that draw no more rows than are seen, and hear j, k and Enter.

import { html, useLayoutEffect, useRef, useState } from "./vendor/preact.js";
import { useKeys } from "./keys.js";
import { Button, Empty } from "./parts_frame.js";
import { go } from "./router.js";

const ROW_PX = 36;
const VIRTUAL_ROWS = 150;
const OVERSCAN = 12;

function cellClass(column) {
  return [column.align, column.isWide && "wide", column.isSpare && "spare", column.isFill && "fill"].filter(Boolean).join(" ");
}

export function Table({ label, columns, rows, keyOf, href, onOpen, selected, hasMore, more, isLoading, empty,
  height, rowClass }) {
  const box = useRef(null);
  const [cursor, setCursor] = useState(-1);
  const [view, setView] = useState({ top: 0, height: 800 });
  const isVirtual = rows.length > VIRTUAL_ROWS;
  const begin = isVirtual ? Math.max(0, Math.floor(view.top / ROW_PX) - OVERSCAN) : 0;
  const end = isVirtual ? Math.min(rows.length, Math.ceil((view.top + view.height) / ROW_PX) + OVERSCAN) :
    rows.length;
  const open = (row) => (onOpen ? onOpen(row) : href ? go(href(row)) : undefined);
  const look = () => {
    const node = box.current;
    if (!node) return;
    setView({ top: node.scrollTop, height: node.clientHeight || 800 });
    if (hasMore && more && !isLoading && node.scrollTop + node.clientHeight > node.scrollHeight - 400) more();
  };
  useLayoutEffect(look, [rows.length, isVirtual]);
  const chosen = selected === undefined ? -1 : rows.findIndex((row) => keyOf(row) === selected);
  useLayoutEffect(() => {
    if (chosen < 0 || !box.current) return;
    setCursor(chosen);
    if (isVirtual) box.current.scrollTop = Math.max(0, chosen * ROW_PX - box.current.clientHeight / 2);
    else box.current.querySelectorAll("tbody tr[data-row]")[chosen]?.scrollIntoView({ block: "nearest" });
  }, [selected, chosen >= 0]);
  const move = (by) => {
    if (!rows.length) return false;
    const at = Math.max(0, Math.min(rows.length - 1, cursor + by));
    setCursor(at);
    const node = box.current;
    if (isVirtual && node) {
      const top = at * ROW_PX;
      if (top < node.scrollTop) node.scrollTop = top;
      else if (top + 3 * ROW_PX > node.scrollTop + node.clientHeight) node.scrollTop = top +
        3 * ROW_PX - node.clientHeight;
    } else {
      node?.querySelectorAll("tbody tr[data-row]")[at]?.scrollIntoView({ block: "nearest" });
    }
    return true;
  };
  useKeys({ j: () => move(1), k: () => move(-1), Enter: (event) => {
    if (cursor < 0 || !rows[cursor] || event.target.closest?.("a, button, summary")) return false;
    open(rows[cursor]);
    return true;
  } }, Boolean(href || onOpen));
  if (!rows.length && !isLoading) return empty || html`<${Empty} title="Nothing here" />`;
  const canOpen = Boolean(href || onOpen);
  const click = (row) => (event) => {
    if (!canOpen || event.target.closest("a, button, input, label, summary") ||
      getSelection()?.toString()) return;
    open(row);
  };
  return html`<div class="table-box ${isVirtual ? "virtual" : ""}" ref=${box} onScroll=${look} tabindex="0"
    role="region" aria-label=${label}
    style=${isVirtual || height ? { maxHeight: height || "calc(100vh - 220px)" } : null}>
    <table aria-rowcount=${hasMore ? -1 : rows.length + 1}>
      <caption class="sr">${label}</caption>
      <thead><tr>${columns.map((column) => html`<th scope="col" class=${cellClass(column)}
        title=${column.title || null} style=${column.width ? { width: column.width } :
          null}>${column.label}</th>`)}</tr></thead>
      <tbody>
        ${begin > 0 ? html`<tr aria-hidden="true" class="gap"><td colspan=${columns.length}
          style=${{ height: `${begin * ROW_PX}px` }}></td></tr>` : null}
        ${rows.slice(begin, end).map((row, offset) =>
          html`<tr key=${keyOf(row)} data-row=${begin + offset} aria-rowindex=${begin + offset + 2}
          class="${canOpen ? "opens" : ""} ${begin + offset === cursor ? "cursor" : ""} ${rowClass ?
            rowClass(row) : ""}"
          aria-selected=${selected === undefined ? null : keyOf(row) === selected ? "true" : "false"}
            onClick=${click(row)}>
          ${columns.map((column) => html`<td class=${cellClass(column)}>
            ${column.render ? column.render(row) : row[column.key] ??
              html`<span class="muted">–</span>`}</td>`)}</tr>`)}
        ${end < rows.length ? html`<tr aria-hidden="true" class="gap"><td colspan=${columns.length}
          style=${{ height: `${(rows.length - end) * ROW_PX}px` }}></td></tr>` : null}
      </tbody>
    </table>
    ${isLoading ? html`<p class="table-foot" role="status">Loading…</p>`
      : hasMore ? html`<p class="table-foot"><${Button} kind="quiet"
      onClick=${more}>Show more</${Button}></p>` : null}
  </div>`;
}

export function Behind({ label = "Show as a table", children }) {
  const [isOpen, setOpen] = useState(false);
  return html`<details class="behind" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${label}</summary>${isOpen ? children : null}</details>`;
}
