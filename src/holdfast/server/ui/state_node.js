// How one value of a state is written: short, safe, and the same everywhere.

import { html } from "./vendor/preact.js";
import { Icon, bytesText, countText } from "./parts.js";

/** What is larger is only loaded when somebody asks for it. */
export const BIG_BYTES = 100_000;
const HEX_BYTES = 48;
const SHOWN_CHARS = 300;
const SCALARS = new Set(["string", "number", "boolean", "null", "bytes"]);
const SCALAR_TAGS = new Set(["str", "int", "float", "date", "datetime", "timedelta", "uuid", "decimal"]);

/** Whether there is something below a node that is worth opening. */
export function isBranch(node) {
  if (isSealed(node)) return false;
  return !SCALARS.has(node.kind) && !(SCALAR_TAGS.has(node.kind) && hasValue(node)) && node.count !== 0;
}

/** Whether this is a value under the seal of a person's key: what is stored of it tells nobody anything. */
export const isSealed = (node) => node.kind === "personal";

export const hasValue = (node) => node.kind === "null" || (node.value !== null && node.value !== undefined);

/** Bytes in hex and base64; null if these are none. */
export function bytesOf(value) {
  const encoded = typeof value === "object" && value !== null ? value.v : value;
  if (typeof encoded !== "string") return null;
  try {
    const text = atob(encoded);
    const shown = Array.from(text.slice(0, HEX_BYTES), (char) => char.charCodeAt(0).toString(16).padStart(2,
      "0"));
    return { hex: shown.join(" ") + (text.length > HEX_BYTES ? " …" : ""), base64: encoded,
      length: text.length };
  } catch {
    return null;
  }
}

/** What a value looks like on one line. */
export function valueText(node) {
  const { kind, value } = node;
  if (isSealed(node)) return "under a person's seal";
  if (isBranch(node) && value?.$hf && "v" in value) return JSON.stringify(value.v);
  if (isBranch(node) || !hasValue(node)) return String(node.preview ?? "");
  if (kind === "object") return "{}";
  if (kind === "array") return "[]";
  if (kind === "null") return "null";
  if (kind === "bytes") return bytesOf(value)?.hex ?? String(node.preview ?? "");
  if (typeof value === "object") return typeof value.v === "string" ? value.v : JSON.stringify(value.v ??
    value);
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

/** What is copied: texts as they are, bytes as base64, all else as JSON. */
export function copyText(node) {
  if (node.kind === "bytes") return bytesOf(node.value)?.base64 ?? String(node.preview ?? "");
  return typeof node.value === "string" ? node.value : JSON.stringify(node.value ?? null, null, 2);
}

export function Value({ node }) {
  const text = valueText(node);
  const kind = isBranch(node) ? "branch" : node.kind;
  return html`<span class="value kind-${kind}">${text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…`
    : text}</span>
    ${SCALARS.has(node.kind) || node.kind === "object" || node.kind === "array" ? null : html`<span class="tag">
      ${node.kind}</span>`}
    ${node.is_masked ? html`<span class="tag masked"><${Icon} name="lock" /> ${isBranch(node)
      ? "masked inside" : "masked"}</span>` : null}
    ${node.kind === "bytes" ? html`<span class="tag">${countText(node.count)} bytes</span>` : null}
    ${node.size_bytes >= 1000 ? html`<span class="size num"
      title=${`${countText(node.size_bytes)} bytes as JSON`}>${bytesText(node.size_bytes)}</span>` : null}`;
}
