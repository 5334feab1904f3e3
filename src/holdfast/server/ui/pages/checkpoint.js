// One checkpoint: what it is in a sentence, its metadata, its state, and what can be done with it.

import { html } from "../vendor/preact.js";
import { may, path, useGet, whyNot } from "../api.js";
import { useKeys } from "../keys.js";
import { Badge, Button, Buttons, Bytes, Card, Command, Copy, Empty, Facts, Hash, Icon, Id, Loaded, Long, Meter, Page, Problem,
  Status, Time, act, ageText, bytesText, countText, quoted, short } from "../parts.js";
import { ask, go, to } from "../router.js";
import StateTree from "./state_tree.js";

const TONES = ["info", "violet", "ok", "warn", "quiet"];
const FIELDS_SHOWN = 5;
// Tone, icon, the words on the badge, and what they mean.
const SIGNATURES = {
  signed: ["ok", "lock", "signed", "Its entry lies under a signed head: checksum, proof and signature were checked."],
  waiting: ["warn", "ring", "waits for a signed head", "No signed head covers its entry yet."],
  untold: ["quiet", "question", "not in the trail", "No entry tells of it: the trail was off, or it was copied here."],
  broken: ["bad", "cross", "does not verify", "What the trail says of it is not right."],
  unknown: ["warn", "question", "signature not known", "It cannot be told here."],
};

export default function Checkpoint({ params, query }) {
  const detail = useGet(path`/checkpoints/${params.id}`, { live: (event) => Boolean(detail.data) &&
    event.workflow_id === detail.data.row.workflow_id });
  const found = detail.data;
  const step = (name) => () => (found?.[name] ? go(to.checkpoint(found[name])) : false);
  useKeys({ "[": step("previous"), "]": step("next"), d: () => (found?.row.parent
    ? go(to.diff(found.row.parent, found.row.id)) : false) });
  const run = found?.row.workflow_id ?? params.id.replace(/@[^@]*$/, "");
  return html`<${Page} title=${found ? `Checkpoint ${found.row.sequence}` : "Checkpoint"} crumbs=${[["Runs",
    to.runs()], [short(run, 48), to.run(run, "checkpoints")]]}
    note=${found ? sentence(found) : null} scopes=${["state:read", "write", "recover"]} actions=${found ? html`<${Actions} found=${found}
      reload=${detail.reload} />` : null}>
    <${Loaded} of=${detail} lines=${10}>${(data) => html`<${Body} found=${data} query=${query} />`}</${Loaded}>
      </${Page}>`;
}

/** What this checkpoint is, in one sentence. */
function sentence({ row, forked_from: origin }) {
  const by = row.agent_id ? ` by ${row.agent_id}` : "";
  const where = row.stage_id ? ` at ${row.stage_id}` : "";
  const from = origin ? `, forked from ${origin}` : "";
  return `${row.type.replaceAll("_",
    " ")}${by}${where}, made ${ageText(new Date(row.created_at))}${from}: ${row.status}, ${
    bytesText(row.size_bytes)} of state, its record takes ${bytesText(row.stored_bytes)}.`;
}

function Actions({ found, reload }) {
  const { row } = found;
  const id = row.id;
  return html`<${Button} icon="left" disabled=${!found.previous} href=${found.previous &&
    to.checkpoint(found.previous)} title="Previous checkpoint ([)">Previous</${Button}>
    <${Button} icon="right" kind="onward" disabled=${!found.next} href=${found.next && to.checkpoint(found.next)}
      title="Next checkpoint (])">Next</${Button}>
    <${Button} disabled=${!row.parent} scope="state:read" href=${row.parent && to.diff(row.parent, id)}
      title="Difference to the parent (d)">Diff with parent</${Button}>
    <${Button} icon="pin" scope="write" onClick=${() => act(row.pinned ? "unpin" : "pin", { checkpoint: id,
      onDone: reload })}>${row.pinned ? "Unpin" : "Pin"}</${Button}>
    <${Button} icon="edit" scope="write" onClick=${() => act("annotate", { checkpoint: id, labels: found.labels,
      note: found.note, onDone: reload })}>Annotate</${Button}>
    <${Button} icon="check" scope="write" onClick=${() => act("validate", {
      checkpoint: id })}>Validate</${Button}>
    <${Button} icon="fork" scope="recover" why=${unfit(found)} onClick=${() => act("fork", {
      checkpoint: id })}>Fork</${Button}>
    <${Recovery} found=${found} />`;
}

/** Recover from this checkpoint where that can be; the run, where it cannot. */
function Recovery({ found }) {
  const { row } = found;
  const why = unfit(found);
  const run = row.workflow_id;
  return html`<${Button} icon="retry" kind=${why ? "" : "primary"} scope="recover" why=${why} onClick=${() =>
    act("recover", { workflow_id: run, checkpoint: row.id })}>Recover from here</${Button}>
    ${why ? html`<${Button} icon="retry" kind="primary" scope="recover" onClick=${() =>
      act("recover", { workflow_id: run })}>Recover the run</${Button}>` : null}`;
}

/** Why nothing can be recovered or forked from a checkpoint; empty where it can. */
function unfit({ row, is_quarantined: isAside, problem }) {
  if (row.pruned) return "Its state was removed.";
  if (isAside) return "It is in quarantine.";
  return problem ? "It cannot be read." : "";
}

function Aside({ id }) {
  const { data } = useGet("/quarantine", { query: { limit: 500 } });
  const found = data?.items.find((one) => one.bars && one.place === id);
  return html`<div class="problem" role="note" data-testid="aside"><${Icon} name="lock" /><div>
    <p class="problem-title">It is in quarantine${found ? `: ${short(found.reason, 400)}` : ""}</p>
    <p><a href=${to.quarantine({ name: found?.name })}>See it in the quarantine</a></p></div></div>`;
}

/** Whether a signed head covers the checkpoint; of a head that is signed meanwhile the trail tells. */
function useSignature(id, run) {
  return useGet(path`/checkpoints/${id}/signature`, { live: (event) => event.type === "HEAD_SIGNED" ||
    event.workflow_id === run });
}

function Signature({ told: { data, problem } }) {
  if (problem) return html`<${Badge} tone="warn" icon="question" title=${problem.message}>signature not known</${Badge}>`;
  if (!data) return null;
  const [tone, icon, said, meaning] = SIGNATURES[data.state];
  const why = data.problem ? `${meaning} ${data.problem}` : meaning;
  const badge = html`<span data-testid="signature" data-signature=${data.state}><${Badge} tone=${tone}
    icon=${icon} title=${why}>${said}</${Badge}></span>`;
  return data.index === null || !may("audit:read") ? badge : html`<a href=${to.entry(data.index)}>${badge}</a>`;
}

/** The same at length, for whoever has no pointer to hover with. */
function signatureFacts({ data }) {
  if (!data) return [];
  const [, , said, meaning] = SIGNATURES[data.state];
  const entry = data.index === null ? null : `entry ${countText(data.index)}`;
  return [
    ["Signature", html`<span data-testid="signature-fact">${said}${entry ? html` (${may("audit:read")
      ? html`<a href=${to.entry(data.index)}>${entry}</a>` : entry}${data.size
      ? `, the newest head covers ${countText(data.size)}` : ""})` : ""}</span><br /><span class="muted">${
      data.problem || meaning}</span>`, "signed head"],
    data.key && ["Signed by", html`<code>${data.key}</code> <span class="muted">${data.is_own_key
      ? "the key of this server" : "a key that the log names: compare it"}</span>`],
  ];
}

function Body({ found, query }) {
  const { row } = found;
  const told = useSignature(row.id, row.workflow_id);
  return html`<div class="columns">
    <div class="stack">
      <div class="row" data-testid="chips"><${Status} value=${row.status} />${row.pinned ? html`<${Status}
        value="pinned" />` : null}
        ${found.is_quarantined ? html`<a href=${to.quarantine()}><${Status} value="quarantined" /></a>`
          : null}${row.pruned ? html`<${Status} value="pruned" />` : null}
        ${row.label ? html`<${Badge} tone="info" title="Label">${row.label}</${Badge}>`
          : null}${found.labels.map((label) => html`<${Badge} tone="info" title="Label, given later">${label}
          </${Badge}>`)}${row.retry_count ? html`<${Badge} tone="warn" icon="retry">
          ${row.retry_count} of ${found.max_retries} retries</${Badge}>` : null}<${Signature} told=${told} /></div>
      ${found.summary ? html`<p class="summary"><${Long} text=${found.summary} max=${800} /></p>` : null}
      ${found.note ? html`<blockquote class="said" data-testid="note"><${Long} text=${found.note} max=${800} />
        ${found.noted_by ? html`<footer class="muted">${found.noted_by}</footer>` : null}</blockquote>` : null}
      ${found.is_quarantined ? html`<${Aside} id=${row.id} />` : found.problem ? html`<${Problem} problem=${{ message: found.problem, code: "cannot_be_read",
        hint: "Validate it, or recover the run from an older one." }} />` : null}
      ${found.error_message ? html`<div class="problem" role="note"><${Icon} name="warn" /><div><p
        class="problem-title">It ended with an error</p><pre><${Long} text=${found.error_message} /></pre></div>
        </div>` : null}
      <${Card} title="State" actions=${html`<span class="muted"><${Bytes} value=${row.size_bytes} /></span>`}>
        <${State} found=${found} query=${query} /></${Card}>
    </div>
    <div class="stack"><${About} found=${found} told=${told} /><${Fields} found=${found} /></div></div>`;
}

function State({ found, query }) {
  if (found.row.pruned) return html`<${Empty} title="The state was removed"
    text="The retention removed it; that it was there is still known." />`;
  if (!may("state:read")) return html`<${Empty} title="The state is not shown" text=${whyNot("state:read")} />`;
  if (found.problem) return html`<${Empty} title="The state cannot be read" text=${found.problem} />`;
  return html`<${StateTree} checkpoint=${found.row.id} focus=${query.at} onFocus=${(at) => ask({ at })} />
    <p class="muted hint">Arrows move and open, Enter loads more, <kbd>c</kbd> copies the value, <kbd>y</kbd> its pointer.</p>
    <${Command} text=${`holdfast show ${quoted(found.row.id)} --state${query.at ? `=${quoted(query.at)}`
      : ""}`} />`;
}

function About({ found, told }) {
  const { row } = found;
  return html`<${Card} title="About it"><${Facts} items=${[
    ["Id", html`<span class="id"><code>${short(row.id, 40)}</code><${Copy} text=${row.id} label="Copy the id" />
      </span>`],
    ["Made", html`<${Time} at=${row.created_at} isLong />`],
    ["Run", html`<a href=${to.run(row.workflow_id)}>${row.workflow_id}</a>`],
    ["Parent", row.parent && html`<a href=${to.checkpoint(row.parent)}>${short(row.parent, 40)}</a>`],
    found.forked_from && ["Forked from", html`<a href=${to.checkpoint(found.forked_from)}>${found.forked_from}
      </a>`],
    ["Checksum", html`<${Hash} value=${row.checksum} />`, "checksum"],
    ...signatureFacts(told),
    ["State", html`<${Bytes} value=${row.size_bytes} />`], ["Record", html`<${Bytes} value=${row.stored_bytes}
      />`],
    ["Type", row.type], ["Stage", row.stage_id], ["Agent", row.agent_id], ["Phase", row.phase], ["Session",
      row.session_id && html`<a href=${to.audit({ session: row.session_id })}>${short(row.session_id, 30)}
      </a>`],
    ["Resumes with", found.resume_handler && html`<code>${found.resume_handler}</code>`], ["Agent version",
      found.agent_version], ["Made with", told.data?.producer && `Holdfast ${told.data.producer}`],
    ["Schema", found.schema_version],
    ["UUID", html`<${Id} value=${row.uuid} isShort />`],
  ]} /><${Command} text=${`holdfast show ${quoted(row.id)}`} />
  <${Buttons} class="row" scopes=${["recover", "write"]}><${Button} kind="quiet" scope="recover" onClick=${() => act("replay", {
    workflow_id: row.workflow_id, end: row.id })}>Replay up to here</${Button}>
    ${found.is_quarantined ? null : html`<${Button} kind="quiet" scope="write" onClick=${() =>
      act("quarantine", { checkpoint: row.id })}>Set aside</${Button}>`}</${Buttons}></${Card}>`;
}

function Fields({ found: { fields } }) {
  if (!fields.length) return null;
  const sorted = [...fields].sort((a, b) => b.size_bytes - a.size_bytes);
  const rest = sorted.slice(FIELDS_SHOWN).reduce((sum, field) => sum + field.size_bytes, 0);
  const parts = sorted.slice(0, FIELDS_SHOWN).map((field, at) => ({ label: field.name, value: field.size_bytes,
    tone: TONES[at] }));
  if (rest) parts.push({ label: "the rest", value: rest, tone: "quiet" });
  const pointer = (name) => `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
  return html`<${Card} title="What takes room"><${Meter} parts=${parts} label="Bytes by field" />
    <ul class="kinds">${sorted.slice(0, 12).map((field) => html`<li><button type="button" class="link"
      onClick=${() => ask({ at: pointer(field.name) })} title=${field.preview}>${short(field.name, 28)}</button>
      <span class="muted">${field.kind}${field.count === null || field.count === undefined ? ""
        : ` ${countText(field.count)}`}</span><${Bytes} value=${field.size_bytes} /></li>`)}</ul></${Card}>`;
}
