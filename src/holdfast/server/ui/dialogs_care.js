// Looking after checkpoints: pruning, pinning, validating, quarantine, and exports of the trail.

import { html, useState } from "./vendor/preact.js";
import { ApiError, path, send, useGet } from "./api.js";
import { Badge, Facts, Field, Loaded, Term, Time, bytesText, countText, counted, quoted, short } from "./parts.js";
import { to } from "./router.js";
import { Acting, Allow, Listed, usePlan } from "./dialogs_frame.js";

/** Write numbers as ranges: 1-40, 42. */
function ranges(numbers) {
  const found = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = found[found.length - 1];
    if (last && last[1] === number - 1) last[1] = number;
    else found.push([number, number]);
  }
  return found.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(", ");
}

const whole = (text, least) => (/^\d+$/.test(String(text).trim()) && Number(text) >= least ? Number(text)
  : null);

export function Prune({ workflow_id: given = "", onClose }) {
  const [run, setRun] = useState(given);
  const [policy, setPolicy] = useState({ keep_last: "10", keep_days: "30", keep_daily: "0", keep_weekly: "0",
    keep_tagged: false });
  const names = useGet("/runs", { query: { limit: 100 }, when: !given });
  const numbers = ["keep_last", "keep_days", "keep_daily", "keep_weekly"].map((name) => [name,
    whole(policy[name], 0)]);
  const isWhole = Boolean(run.trim()) && numbers.every(([, value]) => value !== null);
  const body = { workflow_id: run.trim(), policy: { ...Object.fromEntries(numbers),
    keep_tagged: policy.keep_tagged } };
  const plan = usePlan("/prune/plan", body, isWhole);
  const found = isWhole ? plan.data : undefined;
  const stop = !isWhole ? "Every number is 0 or more." : plan.problem
    ? "There is no plan." : !found || plan.isLoading ? "The plan is on its way."
    : found.holds.length ? "A legal hold keeps everything." : found.sequences.length ? "" : "Nothing would go.";
  const input = (name, label) => html`<label class="choice"><span>${label}</span><input type="number" min="0"
    name=${name} value=${policy[name]} onInput=${(event) => setPolicy({ ...policy,
    [name]: event.currentTarget.value })} /></label>`;
  return html`<${Acting} title=${given ? `Prune ${short(given, 40)}` : "Prune a run"} onClose=${onClose}
    scope="prune" verb=${found?.sequences.length ? `Remove ${counted(found.sequences.length, "checkpoint")}`
    : "Remove"} kind="danger" isWide
    stop=${stop} lacks=${run.trim() ? "" : "Name a run."} command=${found?.command} Result=${Pruned} run=${({ reason, key }) => send("POST", "/prune", {
      plan_id: found.id, reason }, { key })}>
    ${given ? null : html`<${Field} label="Run"><input name="workflow_id" list="prune-runs" value=${run}
      spellcheck=${false} onInput=${(event) => setRun(event.currentTarget.value)} /></${Field}
      ><datalist id="prune-runs">${(names.data?.items ?? []).map((row) => html`<option value=${row.workflow_id}>
        </option>`)}</datalist>`}
    <fieldset class="filterbar"><legend>What stays</legend>${input("keep_last",
      "the last")} ${input("keep_days", "younger than, days")} ${input("keep_daily",
      "one a day, days")} ${input("keep_weekly", "one a week, weeks")}
      <${Allow} checked=${policy.keep_tagged} onChange=${(isOn) => setPolicy({ ...policy,
        keep_tagged: isOn })}>those with a label</${Allow}></fieldset>
    ${isWhole ? html`<${Loaded} of=${plan} lines=${3}>${(data) => html`<section class="plan" aria-label="Plan"
      data-testid="plan"><h3>What would go</h3>
      <${Facts} items=${[["Checkpoints that go", countText(data.sequences.length)], ["That stay",
        countText(data.kept)], ["Bytes given back", bytesText(data.freed_bytes)], ["Legal holds",
        html`${data.holds.length} <${Term} word="legal hold" />`], ["This plan holds until", html`<${Time}
        at=${data.expires_at} />`]]} />
      ${data.sequences.length ? html`<details><summary>Which ones</summary><p class="numbers">
        ${short(ranges(data.sequences), 4000)}</p></details>` : null}
      <${Listed} title="Holds that stand against it" items=${data.holds.map((hold) =>
        `${hold.covers}: ${hold.reason}`)} tone="bad" />
      <p class="muted">Pinned ones and the last two stay in any case. What is removed is exactly what is shown here; that it was there stays known.</p>
        </section>`}</${Loaded}>` : null}
  </${Acting}>`;
}

function Pruned({ answer }) {
  return html`<p>Removed ${counted(answer.sequences.length, "checkpoint")} of <a
    href=${to.run(answer.workflow_id)}>${answer.workflow_id}
    </a>; ${bytesText(answer.freed_bytes)} given back.</p>
    <p class="numbers muted">${short(ranges(answer.sequences), 2000)}</p>`;
}

/** Ask which version of a checkpoint stands now; a change has to name it. */
export async function versionOf(checkpoint) {
  const response = await fetch(`/v1${path`/checkpoints/${checkpoint}`}`, { credentials: "same-origin",
    headers: { Accept: "application/json" }, cache: "no-store" });
  if (!response.ok) throw new ApiError(response.status, await response.json().catch(() => ({})));
  return response.headers.get("ETag");
}

const pinning = (pinned) => function Pinning({ checkpoint, onClose, onDone }) {
  const verb = pinned ? "Pin" : "Unpin";
  const run = async ({ reason, key }) =>
    send("PATCH", path`/checkpoints/${checkpoint}`, { pinned, reason }, { key, headers: {
      "If-Match": await versionOf(checkpoint) } });
  return html`<${Acting} title=${`${verb} ${short(checkpoint, 40)}`} onClose=${onClose} onDone=${onDone}
    scope="write" verb=${verb} run=${run} Result=${Pinned}>
    <section class="plan" aria-label="Plan" data-testid="plan"><p>${pinned
      ? "It stays, whatever the retention says, until it is unpinned."
      : "The retention may remove it again, as any other."} Its state, and the run, stay as they are.</p>
      </section></${Acting}>`;
};

const Pinned = ({ answer }) => html`<p><a href=${to.checkpoint(answer.id)}>${answer.id}</a> is ${answer.pinned
  ? "pinned" : "not pinned any more"}.</p>`;

export const Pin = pinning(true);
export const Unpin = pinning(false);

export function Validate({ checkpoint, onClose }) {
  return html`<${Acting} title=${`Validate ${short(checkpoint, 40)}`} onClose=${onClose} scope="write"
    verb="Validate" command=${`holdfast validate ${quoted(checkpoint)}`} Result=${Validated}
    run=${({ reason, key }) => send("POST", path`/checkpoints/${checkpoint}/validate`, { reason }, { key })}>
    <section class="plan" aria-label="Plan" data-testid="plan">
      <p>Its record, its keyframe and its blobs are read and compared with what was committed. Nothing is changed; that it was checked is told in the trail.</p>
      </section></${Acting}>`;
}

function Validated({ answer }) {
  return html`<p><${Badge} tone=${answer.valid ? "ok" : "bad"} icon=${answer.valid ? "check" : "cross"}>
    ${answer.valid ? "as it was committed" : "damaged"}</${Badge}> ${answer.id ?? answer.name}</p>
    <${Listed} title="What is wrong" items=${answer.problems} tone="bad" /><${Listed}
      title="Damage that did no harm" items=${answer.notes} tone="warn" />`;
}

const quarantined = (verb, tone, where, scope, says, Result) => function Quarantined({ name, place, onClose,
  onDone }) {
  const detail = useGet(path`/quarantine/${name}`);
  return html`<${Acting} title=${`${verb} ${short(place ?? name, 40)}`} onClose=${onClose} onDone=${onDone}
    scope=${scope} verb=${verb} kind=${tone} Result=${Result}
    command=${where === "revalidate" ? `holdfast quarantine show ${quoted(name)}`
      : `holdfast quarantine ${where} ${quoted(name)} --reason '...'`}
    run=${({ reason, key }) => send("POST", `${path`/quarantine/${name}`}/${where}`, { reason }, { key })}>
    <section class="plan" aria-label="Plan" data-testid="plan"><p>${says}</p>
      <${Loaded} of=${detail} lines=${3}>${({ row, damage, last_good: good }) => html`<${Facts}
        items=${[["What", row.place], ["Why it was set aside", row.reason], ["Since", html`<${Time}
        at=${row.found_at} />`], ["Last good ancestor", good && html`<a href=${to.checkpoint(good)}>${good}
        </a>`]]} />
        <${Listed} title="What is in its way now" items=${damage.map((one) =>
          `the ${one.piece} of checkpoint ${one.sequence}: ${one.problem}`)} tone="warn" />`}</${Loaded}>
          </section></${Acting}>`;
};

const Changed = ({ answer }) => html`<p>${answer.place}: ${answer.released
  ? `released, ${answer.released.reason}` : "done"}.</p>`;
const Dropped = ({ answer }) => html`<p>The evidence about ${answer.place} is gone for good.</p>`;

export const Revalidate = quarantined("Check again", "primary", "revalidate", "write",
  "It is read again and compared with what was committed. Nothing is released by that.", Validated);
export const Release = quarantined("Release", "primary", "release", "write",
  "It may be used again, by recoveries too. That works only if it verifies again; the evidence stays.",
  Changed);
export const Drop = quarantined("Drop", "danger", "drop", "prune",
  "The bytes that were set aside, and the report, are removed for good. This cannot be undone.", Dropped);

export function SetAside({ checkpoint, onClose, onDone }) {
  return html`<${Acting} title=${`Set ${short(checkpoint, 40)} aside`} onClose=${onClose} onDone=${onDone}
    scope="write" verb="Set aside" kind="danger" Result=${Aside}
    run=${({ reason, key }) => send("POST", "/quarantine", { checkpoint, reason }, { key })}>
    <section class="plan" aria-label="Plan" data-testid="plan">
      <p>It is not used any more, by recoveries neither, until it is released. Its bytes are kept as evidence.</p>
      </section></${Acting}>`;
}

const Aside = ({ answer }) => html`<p><a href=${to.quarantine({ name: answer.name })}>${answer.place}
  </a> is set aside.</p>`;

export function Export({ session: given = "", onClose }) {
  const [session, setSession] = useState(given);
  const [payloads, setPayloads] = useState(false);
  const [isUnderstood, setUnderstood] = useState(false);
  const body = { payloads, ...(session.trim() ? { session: session.trim() } : {}) };
  const command = `holdfast audit export holdfast-audit${body.session ? ` --session ${quoted(body.session)}`
    : ""}${payloads ? "" : " --no-payloads"}`;
  return html`<${Acting} title="Export the trail" onClose=${onClose} scope="audit:export" verb="Export"
    command=${command} Result=${Exported} lacks=${isUnderstood ? ""
    : "Say first that you know whom this may be about."}
    run=${({ reason, key }) => send("POST", "/audit/export", { ...body, reason }, { key })}>
    <section class="plan" aria-label="Plan" data-testid="plan">
      <p>Makes one file with the entries, the signed heads, the public keys, the tiles of the tree and a text that says how to verify it without this server.</p>
      </section>
    <${Field} label="Only this session" hint="Empty: the whole log."><input name="session" value=${session}
      spellcheck=${false} onInput=${(event) => setSession(event.currentTarget.value)} /></${Field}>
    <${Allow} checked=${payloads}
      onChange=${setPayloads}>With payloads: reasons, rationales, texts. Everything can be verified without them.</${Allow}>
    <div class="notice"><h3>Personal data</h3>
      <p>Entries name actors, agents, sessions and runs, which may be people.${payloads
      ? " Payloads may hold anything that people wrote, and what was erased later stays in the copy that you take."
      : ""} Whoever takes the file is responsible for where it goes. That you took it is told in the trail.</p>
      <${Allow} checked=${isUnderstood}
        onChange=${setUnderstood}>I know that, and have a purpose for it.</${Allow}></div></${Acting}>`;
}

function Exported({ answer }) {
  const isOurs = /^\/v1\/audit\/exports\/[0-9a-z_]+$/.test(answer.download);
  return html`<${Facts} items=${[["Entries", countText(answer.entries)], ["Covered by a signed head",
    countText(answer.signed_size)], ["Size", bytesText(answer.bytes)], ["Payloads", answer.has_payloads
    ? "with" : "without"]]} />
    ${isOurs ? html`<p><a class="button primary" href=${answer.download} download="holdfast-audit.zip"
      data-testid="export-download">Download</a></p>` : null}
    <p class="muted">The server keeps the last few exports, and none after it ends.</p>`;
}
