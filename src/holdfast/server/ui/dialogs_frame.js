// What all acting dialogs share: the plan first, a reason, the equal command, the work, and what came of it.

import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { follow, send, whyNot } from "./api.js";
import { Button, Command, Dialog, Field, Icon, Problem, Progress, Status } from "./parts.js";

const REASON_CHARS = 500;
const PLAN_WAIT_MS = 200;
const TOLD_CHARS = 240;

/** Ask for a plan, and anew when what is asked changes; the shape is that of useGet. */
export function usePlan(where, body, when = true) {
  const [state, setState] = useState({ data: undefined, problem: null, isLoading: true });
  const key = when ? `${where} ${JSON.stringify(body)}` : "";
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (!key) return undefined;
    const mine = new AbortController();
    setState((old) => ({ ...old, isLoading: true }));
    const timer = setTimeout(() => {
      send("POST", where, body, { signal: mine.signal }).then(
        (data) => mine.signal.aborted || setState({ data, problem: null, isLoading: false }),
        (problem) => mine.signal.aborted || setState({ data: undefined, problem, isLoading: false }),
      );
    }, PLAN_WAIT_MS);
    return () => {
      clearTimeout(timer);
      mine.abort();
    };
  }, [key, turn]);
  return { ...state, reload: () => setTurn(turn + 1) };
}

const isOperation = (answer) => Boolean(answer?.id && answer.progress && answer.status && answer.kind);

/** Carry something out: {phase: "asking" | "working" | "done", progress, answer, problem, begin(reason)}. */
function useWork(run) {
  const [state, setState] = useState({ phase: "asking", progress: null, answer: null, problem: null });
  // A request that got lost on the way may be sent again with its key, and is done once.
  const key = useRef(crypto.randomUUID());
  const begin = async (reason) => {
    setState({ phase: "working", progress: null, answer: null, problem: null });
    try {
      let answer = await run({ reason, key: key.current });
      if (isOperation(answer)) {
        const ended = await follow(answer, (step) => setState((old) => ({ ...old, progress: step.progress })));
        if (ended.status === "cancelled") throw Object.assign(new Error("It was cancelled."), {
          code: "cancelled", status: 409 });
        answer = ended.result;
      }
      setState({ phase: "done", progress: null, answer, problem: null });
    } catch (problem) {
      if (problem.status) key.current = crypto.randomUUID();
      setState({ phase: "asking", progress: null, answer: null, problem });
    }
  };
  return { ...state, begin };
}

/**
 * An acting dialog. `run({reason, key})` does it, and answers an operation or a result; `Result` shows that.
 * `stop` says why it cannot be done now, `lacks` what is still to be filled in: that is said to whoever
 * tries without it. `command` is the equal one.
 */
export function Acting({ title, onClose, onDone, scope, verb, kind = "primary", isWide, stop = "", lacks = "",
  command, run, Result, needsReason = true, children }) {
  const [reason, setReason] = useState("");
  const [isTried, setTried] = useState(false);
  const work = useWork(run);
  const isAsking = work.phase === "asking";
  const why = whyNot(scope) || lacks || stop;
  // Whoever gave the reason is at the end of the form.
  const said = lacks ? (isTried || reason.trim()) && lacks : stop;
  const isReady = !why && (!needsReason || reason.trim());
  const submit = (event) => {
    event.preventDefault();
    setTried(true);
    if (isReady && isAsking) work.begin(reason.trim());
  };
  const close = () => {
    if (work.phase === "done") onDone?.(work.answer);
    onClose();
  };
  const actions = work.phase === "done"
    ? html`<${Button} kind="primary" onClick=${close} data-testid="dialog-close">Close</${Button}>`
    : html`<${Button} onClick=${close}>${isAsking ? "Do nothing" : "Close; it goes on"}</${Button}>
      <${Button} kind=${kind} scope=${scope} isBusy=${!isAsking} disabled=${!isReady} onClick=${submit}
        data-testid="dialog-act">${verb}</${Button}>`;
  return html`<${Dialog} title=${title} onClose=${close} isWide=${isWide} actions=${actions}>
    ${work.phase === "done" ? html`<div class="outcome" role="status" data-testid="dialog-done"><p><${Status}
      value="done" /></p><${Result} answer=${work.answer} onClose=${close} /></div>`
    : html`<form class="acting" onSubmit=${submit}>
      ${children}
      ${needsReason ? html`<${Field} label="Why" hint="It stays in the audit trail, so name nobody.">
        <textarea name="reason" rows="2" required maxlength=${REASON_CHARS} value=${reason}
          disabled=${!isAsking} onInput=${(event) => setReason(event.currentTarget.value)}
          onKeyDown=${(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && submit(event)}>
            </textarea></${Field}>` : null}
      <${Problem} problem=${work.problem} />
      ${said && !work.problem ? html`<p class="stop" role="status"><${Icon} name="warn" /> ${said}</p>` : null}
      ${isAsking ? null : html`<${Progress} done=${work.progress?.done ?? 0} total=${work.progress?.total}
        unit=${work.progress?.unit || "steps"} />`}
      <${Command} text=${command} />
    </form>`}</${Dialog}>`;
}

export function Listed({ title, items, tone = "", max = 20 }) {
  if (!items?.length) return null;
  return html`<div class="listed ${tone}"><h3>${title}</h3><ul>${items.slice(0, max).map((item) => html`<li>
    ${item}</li>`)}</ul>
    ${items.length > max ? html`<p class="muted">and ${items.length - max} more</p>` : null}</div>`;
}

/** Sentences that are to be known; of one that goes on for long its beginning, the rest is unfolded. */
export function Warnings({ items, title = "To be known" }) {
  return html`<${Listed} title=${title} items=${items.map((text) => html`<${Told} text=${text} />`)}
    tone="warn sentences" />`;
}

function Told({ text }) {
  const end = text.indexOf(". ");
  if (text.length <= TOLD_CHARS || end < 0) return text;
  return html`<details><summary>${text.slice(0, end + 1)}</summary><p>${text.slice(end + 2)}</p></details>`;
}

export function Allow({ checked, onChange, children }) {
  return html`<label class="allow"><input type="checkbox" checked=${checked} onChange=${(event) =>
    onChange(event.currentTarget.checked)} /><span>${children}</span></label>`;
}
