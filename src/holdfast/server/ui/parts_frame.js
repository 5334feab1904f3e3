// Pages, cards, what they say where there is nothing, and what can be pressed or copied.

import { html, useEffect, useId, useRef, useState } from "./vendor/preact.js";
import { session, whyNot } from "./api.js";
import { Icon } from "./parts_status.js";
import { Term } from "./parts_terms.js";
import { countText, quoted, short } from "./parts_words.js";
import { go } from "./router.js";

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    (document.querySelector("[role=dialog]") || document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

export function Copy({ text, label = "Copy" }) {
  const [isDone, setDone] = useState(false);
  const press = async (event) => {
    event.preventDefault();
    event.stopPropagation();
    await copy(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<button type="button" class="copy" aria-label=${isDone ? "Copied" : label} title=${isDone ?
    "Copied" : label}
    onClick=${press}><${Icon} name=${isDone ? "check" : "copy"} /></button>`;
}

/** Say which store a command is about, where its address says all that is needed. */
function withStore(text) {
  const store = session.value?.store ?? "";
  const isNamed = /^(file|sqlite):/.test(store) && text.startsWith("holdfast ") && !text.includes("--store");
  return isNamed ? `${text} --store ${quoted(store)}` : text;
}

/** Which store it is need not be read again and again; it is there when the command is copied. */
const withoutStore = (text) => text.replace(/ ('--store=[^']*'|--store=\S+)/, "");

export function Command({ text, label = "The same on the command line" }) {
  if (!text) return null;
  const whole = withStore(text);
  return html`<div class="command"><span class="sr">${label}: </span><code tabindex="0"
    title=${whole}>${withoutStore(text)}</code>
    <${Copy} text=${whole} label="Copy the command" /></div>`;
}

export function Id({ value, href, isShort }) {
  const text = isShort ? short(value) : value;
  return html`<span class="id">${href ? html`<a href=${href} title=${value}>${text}</a>` :
    html`<span title=${value}>${text}</span>`}
    <${Copy} text=${value} label=${`Copy ${short(value)}`} /></span>`;
}

export function Hash({ value }) {
  return html`<span class="id"><code title=${value}>${short(value.replace(/^sha256:/, ""), 20)}</code><${Copy}
    text=${value} label="Copy the hash" /></span>`;
}

export function Page({ title, copy: text, crumbs = [], actions, scopes, note, children }) {
  useEffect(() => { document.title = `${title} · Holdfast`; }, [title]);
  return html`<div class="page">
    <header class="head">
      <div class="head-text">
        ${crumbs.length ? html`<nav class="crumbs" aria-label="Where this is">
          ${crumbs.map(([text, href]) =>
            html`<a href=${href}>${text}</a><span aria-hidden="true">/</span>`)}</nav>` : null}
        <div class="title"><h1 tabindex="-1">${title}</h1>${text ?
          html`<${Copy} text=${text} label=${`Copy ${short(text)}`} />` : null}</div>
        ${note ? html`<p class="note">${note}</p>` : null}
      </div>
      ${actions ? html`<${Buttons} scopes=${scopes}>${actions}</${Buttons}>` : null}
    </header>
    ${children}
  </div>`;
}

export function Card({ title, actions, scopes, isFlush, label, children }) {
  const id = useId();
  const Tag = title || label ? "section" : "div";
  return html`<${Tag} class="card ${isFlush ? "flush" : ""}" aria-labelledby=${title ? id : null}
    aria-label=${title ? null : label}>
    ${title ? html`<header class="card-head"><h2 id=${id}>${title}</h2><${Buttons} scopes=${scopes}>${actions}
      </${Buttons}></header>` : null}
    <div class="card-body">${children}</div>
  </${Tag}>`;
}

export function Facts({ items }) {
  return html`<dl class="facts">${items.filter(Boolean).map(([name, value, term]) => html`<div>
    <dt>${name}${term ? html`<${Term} word=${term} />` : null}</dt>
    <dd>${value === null || value === undefined || value === "" ? html`<span class="muted">–</span>` :
      value}</dd></div>`)}</dl>`;
}

export function Figure({ label, value, note, href, tone }) {
  const body = html`<span class="number-label">${label}</span><span class="number-value num">${value}</span>
    ${note ? html`<span class="number-note">${note}</span>` : null}`;
  return href ? html`<a class="number ${tone || ""}" href=${href}>${body}</a>` :
    html`<div class="number ${tone || ""}">${body}</div>`;
}

/** A list that may be wider than the screen: moves what is current in it into view, and nothing else. */
export function useCurrentInView(selector, current) {
  const list = useRef(null);
  useEffect(() => {
    const item = list.current?.querySelector(selector);
    if (!item || list.current.scrollWidth <= list.current.clientWidth) return;
    const around = list.current.getBoundingClientRect(), at = item.getBoundingClientRect();
    list.current.scrollLeft += at.left + at.width / 2 - around.left - around.width / 2;
  }, [current]);
  return list;
}

export function Tabs({ label, tabs, current, hrefOf, onChange, children }) {
  // Counts that come later make the tabs wider.
  const list = useCurrentInView("[aria-selected=true]", [current, ...tabs.map((tab) => tab.count)].join());
  const id = useId();
  const choose = (tab) => (onChange ? onChange(tab) : go(hrefOf(tab)));
  const press = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const at = (tabs.findIndex((tab) => tab.id === current) + by + tabs.length) % tabs.length;
    choose(tabs[at].id);
    list.current?.querySelectorAll("[role=tab]")[at]?.focus();
  };
  return html`<div class="tabs"><div role="tablist" aria-label=${label} ref=${list} onKeyDown=${press}>
      ${tabs.map((tab) => html`<button type="button" role="tab" id=${`${id}-${tab.id}`}
        aria-selected=${tab.id === current ? "true" : "false"}
        aria-controls=${`${id}-panel`} tabindex=${tab.id === current ? 0 : -1} onClick=${() =>
          choose(tab.id)}>${tab.label}
        ${tab.count === undefined || tab.count === null ? null :
          html` <span class="tab-count num">${countText(tab.count)}</span>`}</button>`)}
    </div>
    <div role="tabpanel" id=${`${id}-panel`} aria-labelledby=${`${id}-${current}`}>${children}</div></div>`;
}

export function Field({ label, hint, error, children }) {
  return html`<label class="field ${error ? "wrong" : ""}"><span
    class="field-label">${label}</span>${children}
    ${hint ? html`<span class="field-hint">${hint}</span>` : null}
    ${error ? html`<span class="field-error" role="alert">${error}</span>` : null}</label>`;
}

export function Choice({ label, value, options, onChange }) {
  return html`<label class="choice"><span>${label}</span><select value=${value ?? ""} onChange=${(event) =>
    onChange(event.currentTarget.value)}>
    ${options.map(([option, text]) =>
      html`<option value=${option} selected=${option === (value ?? "")}>${text}</option>`)}</select></label>`;
}

export function Button({ kind = "", scope, icon, isBusy, disabled, why, onClick, href, type = "button",
  children, ...rest }) {
  const reason = why || (scope ? whyNot(scope) : "");
  const body = html`${icon ? html`<${Icon} name=${icon} />` : null}<span>${children}</span>`;
  if (href && !reason && !disabled) return html`<a class="button ${kind}" href=${href}
    ...${rest}>${body}</a>`;
  const button = html`<button type=${type} class="button ${kind}"
    disabled=${Boolean(disabled || isBusy || reason)} aria-busy=${isBusy ? "true" : null}
    title=${reason || null} onClick=${onClick} ...${rest}>${body}</button>`;
  return reason ? html`<span class="refused">${button}<span class="why ${why ? "" : "lacks"}"><${Icon}
    name="lock" />${reason}</span></span>` : button;
}

/** Buttons side by side, and below them once what a token lacks for them. */
export function Buttons({ scopes = [], class: name = "actions", children }) {
  const reason = scopes.length ? whyNot(...scopes) : "";
  const row = html`<div class="${name} ${reason ? "told" : ""}">${children}</div>`;
  return reason ? html`<div class="buttons">${row}<span class="why" aria-hidden="true"><${Icon} name="lock"
    />${reason}</span></div>` : row;
}

export function Progress({ done, total, unit }) {
  const said = total ? `${countText(done)} of ${countText(total)} ${unit || ""}` :
    `${countText(done)} ${unit || ""}`;
  return html`<div class="progress"><progress aria-label="Progress" value=${total ? done : null} max=${total
    || null}></progress>
    <span class="num" role="status">${said}</span></div>`;
}

export function Meter({ parts, label }) {
  const whole = parts.reduce((sum, part) => sum + part.value, 0) || 1;
  return html`<div class="meter" role="img"
    aria-label=${`${label}: ${parts.map((part) =>
      `${part.label} ${Math.round((100 * part.value) / whole)} %`).join(", ")}`}>
    ${parts.map((part) => html`<span class=${part.tone || "info"}
      style=${{ width: `${(100 * part.value) / whole}%` }}
        title=${`${part.label}: ${part.value}`}></span>`)}</div>`;
}

export function Empty({ title, text, command, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${text ? html`<p>${text}</p>` : null}
    ${command ? html`<${Command} text=${command} />` : null}${children}</div>`;
}

export function Problem({ problem, retry, children }) {
  if (!problem) return null;
  return html`<div class="problem" role="alert"><${Icon} name="warn" /><div>
    <p class="problem-title">${problem.message}</p>
    ${problem.place ? html`<p class="muted">At: <code>${short(problem.place, 120)}</code></p>` : null}
    ${problem.hint ? html`<p>${problem.hint}</p>` : null}
    ${(problem.errors || []).map((error) =>
      html`<p>${error.place ? html`<code>${error.place}</code>: ` : null}${error.message}</p>`)}
    ${(problem.candidates || []).length ?
      html`<p>Meant may be: ${problem.candidates.slice(0, 20).join(", ")}</p>` : null}
    <p class="muted">${problem.code}${problem.request_id ? ` · ${problem.request_id}` : ""}</p>
    ${retry ? html`<${Button} icon="retry" onClick=${retry}>Try again</${Button}>` : null}${children}</div></div>`;
}

export function Skeleton({ lines = 4 }) {
  return html`<div class="skeleton" role="status"
    aria-label="Loading">${Array.from({ length: lines }, (_, at) =>
      html`<span style=${{ width: `${92 - ((at * 17) % 40)}%` }}></span>`)}</div>`;
}

export function Loaded({ of, lines, children }) {
  if (of.data === undefined || of.data === null) {
    return of.problem ? html`<${Problem} problem=${of.problem} retry=${of.reload} />` :
      html`<${Skeleton} lines=${lines} />`;
  }
  const body = typeof children === "function" ? children(of.data) : children;
  return html`${of.problem ? html`<${Problem} problem=${of.problem} retry=${of.reload} />` : null}${body}`;
}

export function Long({ text, max = 2000 }) {
  const [isWhole, setWhole] = useState(false);
  const whole = String(text ?? "");
  if (whole.length <= max) return html`<span class="long">${whole}</span>`;
  return html`<span class="long">${isWhole ? whole.slice(0, 200_000) : `${whole.slice(0, max)}…`}</span>
    <${Button} kind="quiet" onClick=${() => setWhole(!isWhole)}>${isWhole ? "Fold" :
      `Show ${countText(whole.length)} characters`}</${Button}>`;
}
