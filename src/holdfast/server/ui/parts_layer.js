// What lies above the page: dialogs, and words that go away by themselves.

import { html, signal, useId, useLayoutEffect, useRef } from "./vendor/preact.js";
import { Icon } from "./parts_status.js";

const INSIDE = "a[href], button:not([disabled]), input:not([disabled]), select, textarea, summary, "
  + "[tabindex='0']";

export function Dialog({ title, onClose, actions, isWide, children }) {
  const box = useRef(null);
  const id = useId();
  // At once: a key that is pressed next is meant for the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const first = box.current.querySelector("[autofocus], input:not([disabled]), textarea, select") ||
      box.current;
    first.focus();
    return () => before?.focus?.();
  }, []);
  // Heard wherever the focus is: what is behind the dialog may have taken it.
  useLayoutEffect(() => {
    const leave = (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      onClose();
    };
    document.addEventListener("keydown", leave, true);
    return () => document.removeEventListener("keydown", leave, true);
  }, [onClose]);
  const press = (event) => {
    if (event.key === "Tab") {
      const all = [...box.current.querySelectorAll(INSIDE)].filter((node) => node.offsetParent);
      const edge = event.shiftKey ? all[0] : all.at(-1);
      if (!all.length || document.activeElement === edge || document.activeElement === box.current &&
        event.shiftKey) {
        event.preventDefault();
        (event.shiftKey ? all.at(-1) : all[0])?.focus();
      }
    }
  };
  return html`<div class="veil" onMouseDown=${(event) => event.target === event.currentTarget && onClose()}>
    <div class="dialog ${isWide ? "is-wide" : ""}" role="dialog" aria-modal="true" aria-labelledby=${id}
      tabindex="-1" ref=${box} onKeyDown=${press}>
      <div class="dialog-head"><h2 id=${id}>${title}</h2><button type="button" class="copy" aria-label="Close"
        onClick=${onClose}><${Icon} name="cross" /></button></div>
      <div class="dialog-body">${children}</div>
      ${actions ? html`<footer>${actions}</footer>` : null}
    </div></div>`;
}

const shown = signal(null);
const toasts = signal([]);

/** Show a dialog; its component gets the props and onClose. */
export function showDialog(Component, props = {}) {
  shown.value = { Component, props };
}

export function closeDialog() {
  shown.value = null;
}

/** Show one of the acting dialogs: "recover", "fork", "answer" and so on, by their names in dialogs.js. */
export async function act(kind, props = {}) {
  const { DIALOGS } = await import("./dialogs.js");
  const found = DIALOGS[kind];
  if (found) showDialog(found.load ? await found.load() : found, props);
}

export function toast(text, tone = "ok") {
  const mine = { text, tone, id: crypto.randomUUID() };
  toasts.value = [...toasts.value, mine];
  setTimeout(() => { toasts.value = toasts.value.filter((other) => other !== mine); }, 6000);
}

/** Where dialogs and toasts are drawn; main.js has it once. */
export function Layer() {
  const dialog = shown.value;
  return html`${dialog ? html`<${dialog.Component} ...${dialog.props} onClose=${closeDialog} />` : null}
    <div class="toasts" role="status"
      aria-live="polite">${toasts.value.map((one) => html`<p key=${one.id} class=${one.tone}>
      <${Icon} name=${one.tone === "bad" ? "cross" : "check"} />${one.text}</p>`)}</div>`;
}
