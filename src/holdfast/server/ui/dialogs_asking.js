// Answering what a run waits for, and asking something of whoever runs it.

import { html, useState } from "./vendor/preact.js";
import { path, send, useGet } from "./api.js";
import { Choice, Dialog, Empty, Facts, Field, Loaded, Time, quoted, short } from "./parts.js";
import { to } from "./router.js";
import { Acting } from "./dialogs_frame.js";

export function Approve({ workflow_id: run, question, onClose }) {
  const open = useGet(path`/runs/${run}/questions`, { when: !question });
  if (question) return html`<${Answer} run=${run} questions=${[question]} onClose=${onClose} />`;
  const questions = open.data && (open.data.items ?? open.data).filter((one) => !one.answer);
  if (questions?.length) return html`<${Answer} run=${run} questions=${questions} onClose=${onClose} />`;
  return html`<${Dialog} title=${`Answer ${short(run, 40)}`} onClose=${onClose}><${Loaded} of=${open}
    lines=${3}>${() => html`<${Empty} title="Nothing waits for an answer"
    text="It may have been answered meanwhile." />`}</${Loaded}></${Dialog}>`;
}

function parsedValue(text) {
  if (!text.trim()) return {};
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { value: text };
  }
}

function Answer({ run, questions, onClose }) {
  const [at, setAt] = useState("0");
  const [said, setSaid] = useState("");
  const [text, setText] = useState("");
  const asked = questions[Number(at)] ?? questions[0];
  const { value } = parsedValue(text);
  const command = `holdfast approve ${quoted(run)} ${quoted(asked.name)} --step ${quoted(asked.step_id)}${said === "no"
    ? " --deny" : ""}${value === undefined ? "" : ` --value ${quoted(JSON.stringify(value))}`}`;
  return html`<${Acting} title=${`Answer ${short(run, 40)}`} onClose=${onClose} scope="write"
    verb=${said === "no" ? "Say no" : "Answer"} kind=${said === "no" ? "danger" : "primary"}
    lacks=${said ? "" : "Say yes or no."} command=${command} Result=${Answered}
    run=${({ reason, key }) => send("POST", path`/runs/${run}/approvals`, { step: asked.step_id,
      name: asked.name, granted: said === "yes", ...(value === undefined ? {} : { value }), reason }, { key })}>
    ${questions.length > 1 ? html`<${Choice} label="Question" value=${at} options=${questions.map((one,
      index) => [String(index), `${one.name} (${one.step_id})`])} onChange=${setAt} />` : null}
    <section class="plan" aria-label="Question" data-testid="plan"><p class="asked">${asked.question ||
      asked.name}</p>
      <${Facts} items=${[["Asks", asked.name], ["Step", asked.step_id], ["Since", html`<${Time}
        at=${asked.since} />`]]} />
      ${asked.data === null || asked.data === undefined ? null : html`<details open>
        <summary>What it is about</summary><pre class="raw" tabindex="0">${shown(asked.data)}</pre></details>`}
        </section>
    <fieldset class="yesno"><legend>Your answer</legend>
      <label><input type="radio" name="granted" value="yes" checked=${said === "yes"} onChange=${() =>
        setSaid("yes")} /> Yes, go on</label>
      <label><input type="radio" name="granted" value="no" checked=${said === "no"} onChange=${() =>
        setSaid("no")} /> No</label></fieldset>
    <details><summary>A value for the agent</summary><${Field} label="Value"
      hint="JSON; anything else is taken as a text."><textarea name="value" rows="3" spellcheck=${false}
      value=${text} onInput=${(event) => setText(event.currentTarget.value)}></textarea></${Field}></details>
  </${Acting}>`;
}

function shown(data) {
  const text = typeof data === "string" ? data : JSON.stringify(data, null, 2);
  return text.length > 20_000 ? `${text.slice(0, 20_000)}…` : text;
}

function Answered({ answer }) {
  return html`<p>The answer was left for <a href=${to.run(answer.workflow_id)}>${answer.workflow_id}
    </a>. ${answer.is_running ? "Whoever runs it takes it up at once."
    : "Nobody runs it now: it is taken up when it is resumed."}</p>`;
}

const WISHES = {
  pause: ["Pause", "primary", "It ends its step, makes a checkpoint, and waits until it is resumed."],
  cancel: ["Cancel", "danger", "It ends at its next step and does not go on. What was done stays done."],
  checkpoint: ["Ask for a checkpoint", "primary", "It makes a checkpoint at its next step, and goes on."],
};

const asking = (kind) => function Wish({ workflow_id: run, onClose }) {
  const [verb, tone, meaning] = WISHES[kind];
  return html`<${Acting} title=${`${verb}: ${short(run, 40)}`} onClose=${onClose} scope="write" verb=${verb}
    kind=${tone} command=${`holdfast ${kind} ${quoted(run)}`} Result=${Asked}
    run=${({ reason, key }) => send("POST", path`/runs/${run}/requests`, { kind, reason }, { key })}>
    <section class="plan" aria-label="Plan" data-testid="plan"><p>${meaning}</p><p
      class="muted">Whoever runs it is asked: the lease stays where it is.</p></section></${Acting}>`;
};

function Asked({ answer }) {
  return html`<p>Left for <a href=${to.run(answer.workflow_id)}>${answer.workflow_id}</a>. ${answer.is_running
    ? "Whoever runs it hears of it at its next step." : "Nobody runs it now: it is heard when it is resumed."}
    </p>`;
}

export const Pause = asking("pause");
export const Cancel = asking("cancel");
export const AskCheckpoint = asking("checkpoint");
