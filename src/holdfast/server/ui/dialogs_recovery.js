// Bringing a run back, beginning another one from a checkpoint, running events again.

import { html, useState } from "./vendor/preact.js";
import { path, send } from "./api.js";
import { Badge, Button, Choice, Command, Dialog, Facts, Field, Loaded, Term, Time, act, countText,
  quoted, short } from "./parts.js";
import { to } from "./router.js";
import { Acting, Allow, Listed, Warnings, usePlan } from "./dialogs_frame.js";

const MODES = [["latest", "the newest sound checkpoint"], ["full", "the first checkpoint, and all events"],
  ["point_in_time", "a certain checkpoint"]];

const numberOf = (checkpoint) => Number(/@(\d+)$/.exec(checkpoint ?? "")?.[1]) || "";

export function Recover({ workflow_id: run, checkpoint, onClose }) {
  const [mode, setMode] = useState(checkpoint ? "point_in_time" : "latest");
  const [target, setTarget] = useState(numberOf(checkpoint));
  const [allowed, setAllowed] = useState({});
  const needsTarget = mode === "point_in_time";
  const body = { workflow_id: run, mode, ...(needsTarget ? { target: Number(target) } : {}) };
  const isWhole = !needsTarget || Number(target) >= 1;
  const plan = usePlan("/recover/plan", body, isWhole);
  const found = plan.data;
  const stop = plan.problem ? "There is no plan." : !found ||
    plan.isLoading ? "The plan is on its way."
    : found.refusals.length ? "It would be refused, see the plan." : found.needs.some((need) => !allowed[need])
      ? "Allow first what the plan asks for." : "";
  const command = found?.command.replace(" --take-over", allowed.take_over ? " --take-over" : "");
  return html`<${Acting} title=${`Recover ${short(run, 40)}`} onClose=${onClose} scope="recover" verb="Recover"
    isWide command=${command} stop=${stop} lacks=${isWhole ? "" : "Name the checkpoint."} Result=${Recovered}
    run=${({ reason, key }) => send("POST", "/recover", { ...body, reason,
      take_over: Boolean(allowed.take_over), allow_repeat_effects: Boolean(allowed.allow_repeat_effects) }, {
      key })}>
    <div class="filterbar"><${Choice} label="From" value=${mode} options=${MODES} onChange=${setMode} />
      ${needsTarget ? html`<label class="choice"><span>Checkpoint</span><input type="number" min="1"
        name="target" value=${target} onInput=${(event) => setTarget(event.currentTarget.value)} /></label>`
        : null}</div>
    ${isWhole ? html`<${Loaded} of=${plan} lines=${5}>${(data) => html`<${RecoveryPlan} plan=${data}
      allowed=${allowed} allow=${(need, isOn) => setAllowed({ ...allowed, [need]: isOn })} />`}</${Loaded}>`
      : null}
  </${Acting}>`;
}

const stepText = (step) => `${step.step_id}${step.agent ? ` of ${step.agent}` : ""}`;
const effectText = (effect) => `${effect.name} of ${effect.step_id}${effect.key ? ` (key ${short(effect.key,
  40)})` : ""}`;

function RecoveryPlan({ plan, allowed, allow }) {
  return html`<section class="plan" aria-label="Plan" data-testid="plan"><h3>What would happen</h3>
    <${Facts} items=${[
      ["Restores", plan.checkpoint ? html`<a href=${to.checkpoint(plan.checkpoint)}>${plan.checkpoint}</a>`
        : "nothing: no checkpoint verifies"],
      ["Events replayed", `${countText(plan.replayed)} of ${countText(plan.events)}`],
      ["Steps lost", countText(plan.steps_lost.length)],
      ["Steps done again", countText(plan.steps_repeated.length)],
      ["Effects that may repeat", html`${countText(plan.effects_at_risk.length)} <${Term} word="effect" />`],
      ["Lease", plan.lease ? html`<${Lease} lease=${plan.lease} />` : "nobody has it", "lease"],
      plan.handler && ["Goes on with", html`<code>${plan.handler}</code>`],
    ]} />
    <${Listed} title="Why it would be refused" items=${plan.refusals} tone="bad" />
    <${Listed} title="Side effects that may happen twice" items=${plan.effects_at_risk.map(effectText)}
      tone="bad" />
    <${Listed} title="Steps that are lost" items=${plan.steps_lost.map(stepText)} tone="warn" />
    <${Listed} title="Steps that are done again" items=${plan.steps_repeated.map(stepText)} />
    <${Listed} title="Checkpoints that are passed over" items=${plan.passed_over.map((number) => `@${number}`)}
      tone="warn" />
    <${Listed} title="Damage that is set aside" items=${plan.damage.map((one) =>
      `the ${one.piece} of checkpoint ${one.sequence}: ${one.problem}`)} tone="bad" />
    <${Listed} title="Events that do not fit" items=${plan.skipped.map((one) =>
      `event ${one.seq} (${one.type}): ${one.reason}`)} tone="warn" />
    <${Warnings} items=${plan.warnings} />
    ${plan.needs.includes("take_over") ? html`<${Allow} checked=${allowed.take_over} onChange=${(isOn) =>
      allow("take_over", isOn)}>
      Take it from <strong>${plan.lease?.owner}</strong>: whoever has it cannot write any more.</${Allow}>`
        : null}
    ${plan.needs.includes("allow_repeat_effects") ? html`<${Allow} checked=${allowed.allow_repeat_effects}
      onChange=${(isOn) => allow("allow_repeat_effects", isOn)}>
      The side effects above may happen twice; I looked at the other side.</${Allow}>` : null}
  </section>`;
}

function Lease({ lease }) {
  return html`<span>${short(lease.owner, 40)}</span> ${lease.is_dead ? html`<${Badge} tone="quiet"
    icon="cross">its process ended</${Badge}>`
    : lease.is_live ? html`<${Badge} tone="warn" icon="play">until <${Time} at=${lease.expires_at} />
      </${Badge}>` : html`<${Badge} tone="quiet">over</${Badge}>`}`;
}

function Recovered({ answer }) {
  return html`<${Facts} items=${[
    ["Run", html`<a href=${to.run(answer.workflow_id)}>${answer.workflow_id}</a>`],
    ["Restored", answer.checkpoint_used && html`<a href=${to.checkpoint(answer.checkpoint_used)}>
      ${answer.checkpoint_used}</a>`],
    ["Recorded as", answer.checkpoint_made && html`<a href=${to.checkpoint(answer.checkpoint_made)}>
      ${answer.checkpoint_made}</a>`],
    ["Events replayed", countText(answer.events_replayed)], ["Events lost", countText(answer.events_lost)],
    ["Set aside", countText(answer.quarantined.length)], ["Took", `${Math.round(answer.recovery_time_ms)} ms`],
  ]} /><${Warnings} items=${answer.warnings} />
  <p>The state is back. The work goes on where its program runs:</p><${Command}
    text=${`holdfast resume ${quoted(answer.workflow_id)}`} />`;
}

export function Resume({ workflow_id: run, onClose }) {
  return html`<${Dialog} title=${`Resume ${short(run, 40)}`} onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Close</${Button}><${Button} kind="primary" scope="recover"
      onClick=${() => act("recover", { workflow_id: run })}>Recover its state first…</${Button}>`}>
    <p>The work goes on where its program is: agents are code, and this server has none. Run this there:</p>
    <${Command} text=${`holdfast resume ${quoted(run)}`} />
    <p class="muted">It takes the newest sound checkpoint, replays what came after, and goes on from there. If the newest checkpoint is damaged, or another process has the run, recover it first.</p>
      </${Dialog}>`;
}

function parsedEdits(text) {
  if (!text.trim()) return { edits: [] };
  try {
    const edits = JSON.parse(text);
    return Array.isArray(edits) ? { edits } : {
      error: "Edits are a list: [{\"op\": \"replace\", \"path\": \"/context/tone\", \"value\": \"dry\"}]." };
  } catch (fault) {
    return { error: `This is no JSON: ${fault.message}` };
  }
}

export function Fork({ checkpoint, onClose }) {
  const [name, setName] = useState(`${checkpoint.replace(/@[^@]*$/, "")}-fork`);
  const [text, setText] = useState("");
  const { edits, error } = parsedEdits(text);
  const body = { new_workflow_id: name.trim(), edits: edits ?? [] };
  const isWhole = Boolean(name.trim() && !error);
  const plan = usePlan(path`/checkpoints/${checkpoint}/fork/plan`, body, isWhole);
  const stop = error ? "The edits cannot be read." : plan.problem
    ? "There is no plan." : !plan.data || plan.isLoading ? "The plan is on its way."
    : plan.data.refusals.length ? "It would be refused, see the plan." : "";
  return html`<${Acting} title=${`Fork ${short(checkpoint, 40)}`} onClose=${onClose} scope="recover"
    verb="Fork" stop=${stop} lacks=${name.trim() ? "" : "Name the new run."} command=${plan.data?.command} Result=${Forked}
    run=${({ reason, key }) => send("POST", path`/checkpoints/${checkpoint}/fork`, { ...body, reason }, {
      key })}>
    <${Field} label="Name of the new run"><input name="new_workflow_id" required value=${name}
      spellcheck=${false} onInput=${(event) => setName(event.currentTarget.value)} /></${Field}>
    <details><summary>Change the state on the way</summary><${Field} label="Edits, as JSON Patch (RFC 6902)"
      error=${error}>
      <textarea name="edits" rows="4" spellcheck=${false} value=${text}
        placeholder='[{"op": "replace", "path": "/context/tone", "value": "dry"}]' onInput=${(event) =>
        setText(event.currentTarget.value)}></textarea></${Field}></details>
    ${isWhole ? html`<${Loaded} of=${plan} lines=${3}>${(data) => html`<section class="plan" aria-label="Plan"
      data-testid="plan"><h3>What would happen</h3>
      <${Facts} items=${[["Begins with", html`<a href=${to.checkpoint(data.forked_from)}>${data.forked_from}
        </a>`], ["New run", data.new_workflow_id], ["Checkpoints it begins with", data.checkpoints], ["Edits",
        data.edits]]} />
      <${Listed} title="Why it would be refused" items=${data.refusals} tone="bad" />
      <${Warnings} items=${data.warnings} />
      <p class="muted">The other run stays as it is. No lease is needed, and nothing outside happens before somebody runs the fork: then its steps have their side effects again.</p>
        </section>`}</${Loaded}>` : null}
  </${Acting}>`;
}

function Forked({ answer }) {
  return html`<p><a href=${to.run(answer.workflow_id)}>${answer.workflow_id}</a> begins with <a
    href=${to.checkpoint(answer.id)}>${answer.id}</a>, from <a href=${to.checkpoint(answer.forked_from)}>
    ${answer.forked_from}</a>.</p>
    <p>Let it go on where its program runs:</p><${Command}
      text=${`holdfast resume ${quoted(answer.workflow_id)}`} />`;
}

export function Replay({ workflow_id: run, start: from = "", end: until = "", onClose }) {
  const [start, setStart] = useState(from);
  const [end, setEnd] = useState(until);
  const body = { workflow_id: run, ...(start.trim() ? { start: start.trim() } : {}), ...(end.trim() ? {
    end: end.trim() } : {}) };
  const command = `holdfast replay ${quoted(run)}${body.start ? ` --from ${quoted(body.start)}` : ""}${body.end
    ? ` --to ${quoted(body.end)}` : ""}`;
  return html`<${Acting} title=${`Replay ${short(run, 40)}`} onClose=${onClose} scope="recover" verb="Replay"
    isWide command=${command} Result=${Replayed}
    run=${({ reason, key }) => send("POST", "/replay", { ...body, reason }, { key })}>
    <section class="plan" aria-label="Plan" data-testid="plan">
      <p>The events are run through their reducers again and compared with every stored state. <strong>Nothing in the run is changed, no agent is called, and no side effect happens.</strong> No lease is needed.</p>
      </section>
    <${Field} label="Begin at" hint="Empty: the oldest checkpoint that is kept."><input name="start"
      value=${start} placeholder=${`${run}@1`} spellcheck=${false} onInput=${(event) =>
      setStart(event.currentTarget.value)} /></${Field}>
    <${Field} label="End at" hint="Empty: the last event."><input name="end" value=${end}
      placeholder=${`${run}@event:123`} spellcheck=${false} onInput=${(event) =>
      setEnd(event.currentTarget.value)} /></${Field}>
  </${Acting}>`;
}

function Replayed({ answer }) {
  const isSame = !answer.diverged && !answer.steps.some((step) => step.problem);
  return html`<p><${Badge} tone=${isSame ? "ok" : "bad"} icon=${isSame ? "check" : "cross"}>${isSame
    ? "no divergence" : `${countText(answer.diverged)} divergences`}</${Badge}> <span>from ${answer.start} to ${answer.end}</span></p>
    <${Facts} items=${[["Events", countText(answer.events)], ["Replayed", countText(answer.replayed)],
      ["Diverged", countText(answer.diverged)], ["Left out", countText(answer.left_out)],
      ["Not explained by events", countText(answer.unexplained)]]} />
    <${Listed} title="Where" items=${answer.steps.flatMap((step) => [
      ...(step.problem ? [`${step.end}: ${step.problem}`] : []),
      ...step.differences.map((one) => `${step.end} ${one.pointer || "/"}: ${String(one.kind).replaceAll("_",
        " ")}${one.event_seq ? `, event ${one.event_seq}` : ""}`),
      ...step.skipped.map((one) => `${step.end}: event ${one.seq} (${one.type}) left out: ${one.reason}`),
    ])} max=${100} />`;
}
