// One entry: decoded and raw, its payload, and its proof, which is checked in the page.

import { html, useEffect, useState } from "../vendor/preact.js";
import { getText, path, useGet, whyNot } from "../api.js";
import { useKeys } from "../keys.js";
import { Badge, Button, Card, Command, Copy, Empty, Facts, Hash, Id, Loaded, Page, Problem, Status, Tabs, Term, Time,
  quoted, short, toast } from "../parts.js";
import { ask, go, to } from "../router.js";
import { ownKeys, stateOf } from "../trail_check.js";
import { Fault, canVerify, fromBase64, checkSignatures, hex, leafHash, parseHead, parseNote, parseVkey,
  readLine, verifyInclusion } from "../verify.js";

const PAYLOADS = {
  none: "This entry has no payload.",
  erased: "The payload was erased. The entry, and every proof of it, stays valid without it.",
  sealed: "The payload is encrypted, and its key is not at hand here.",
  damaged: "The payload is not the one that the entry commits to.",
};

export default function AuditEntry({ params, query }) {
  const index = Number(params.index);
  const why = whyNot("audit:read");
  const detail = useGet(path`/audit/entries/${params.index}`, { when: !why });
  const step = (by) => () => index + by >= 0 && go(to.entry(index + by));
  useKeys({ "[": step(-1), "]": step(1) });
  return html`<${Page} title=${`Entry ${params.index}`} crumbs=${[["Audit trail", to.audit()]]}
    actions=${html`<${Button} icon="left" disabled=${!index} onClick=${step(-1)}
      title="Entry before ([)">Before</${Button}>
      <${Button} icon="right" kind="onward" onClick=${step(1)} title="Entry after (])">After</${Button}>
      <${Copy} text=${location.href} label="Copy the address of this entry" />`}>
    ${why ? html`<${Empty} title="The trail is not shown" text=${why} />` : html`<${Loaded} of=${detail}
      lines=${10}>${(found) => html`<${Entry} found=${found} index=${index} query=${query} />`}</${Loaded}>`}
  </${Page}>`;
}

/** What is known of the entry: by its proof where that was checked here, or by the last verification. */
function known(row, steps = []) {
  if (steps.some((step) => step.state === "broken")) return "broken";
  const state = stateOf(row), isRight = steps.length > 0 && steps.every((step) => step.state === "ok");
  return state === "unchecked" && isRight ? "verified" : state;
}

function Entry({ found, index, query }) {
  const { row } = found;
  const [result, setResult] = useState(null);
  const view = query.view === "raw" || row.problem ? "raw" : "decoded";
  return html`<div class="two">
    <div>
      <${Card} title=${row.type || "An entry that cannot be read"} actions=${html`<${Status}
        value=${known(row, result?.steps)} />`}>
        ${row.problem ? html`<${Problem} problem=${{ message: row.problem, code: "audit_entry_damaged",
          hint: "Run `holdfast audit verify` to see how far the trail can be trusted." }} />` : null}
        <${Tabs} label="Views of the entry" tabs=${[{ id: "decoded", label: "Decoded" }, { id: "raw",
          label: "Raw" }]} current=${view}
          onChange=${(id) => ask({ view: id === "raw" ? "raw" : "" })}>
          ${view === "raw" ? html`<${Raw} line=${found.line} />` : html`<${Decoded} found=${found} />`}
            </${Tabs}>
      </${Card}>
      <${Payload} found=${found} />
    </div>
    <${Proof} index=${index} row=${row} result=${result} setResult=${setResult} />
  </div>`;
}

function Decoded({ found }) {
  const { row } = found;
  const link = (name, value, href) => value && [name, html`<a href=${href}>${value}</a>`];
  return html`<${Facts} items=${[
    ["When", html`<${Time} at=${row.time} isLong />`],
    ["Outcome", html`<${Status} value=${row.outcome} />`],
    link("Who", row.actor, to.audit({ actor: row.actor })),
    link("Agent", row.agent, to.audit({ agent: row.agent })),
    link("Run", row.workflow_id, to.run(row.workflow_id ?? "")),
    link("Session", row.session_id, to.audit({ session: row.session_id })),
    ["Number in the session", row.seq],
    ["Id", row.id && html`<${Id} value=${row.id} />`],
    row.correlation_id && ["Request", html`<${Id} value=${row.correlation_id} isShort />`],
    ["Hash", found.hash && html`<${Hash} value=${found.hash} />`],
    ["Hash of the entry before", found.prev_hash && html`<${Hash} value=${found.prev_hash} />`],
  ]} />
  ${Object.keys(row.facts ?? {}).length ? html`<h3>Facts</h3><${Facts}
    items=${Object.entries(row.facts).map(([name, fact]) => [name, html`<code>${String(fact)}</code>`])} />`
    : null}`;
}

function Raw({ line }) {
  return html`<p class="muted">These bytes, newline included, are the leaf of the tree. <${Copy} text=${line}
    label="Copy the line" /></p>
    <pre class="raw" tabindex="0">${line}</pre>`;
}

function Payload({ found }) {
  const state = found.payload_state;
  if (found.row.problem) return html`<${Card} title="Payload"><p
    class="muted">Not looked at: the entry itself is broken.</p></${Card}>`;
  if (found.payload === null || found.payload === undefined) {
    return html`<${Card} title="Payload"><p class="muted">${PAYLOADS[state] ?? `State: ${state}`}</p>
      </${Card}>`;
  }
  const text = JSON.stringify(found.payload, null, 2);
  return html`<${Card} title="Payload" actions=${html`<${Copy} text=${text} label="Copy the payload" />`}>
    <pre class="raw" tabindex="0">${text.length > 100_000 ? `${text.slice(0, 100_000)}…` : text}</pre>
    <p class="muted">What may be erased is kept here, beside the trail; the entry holds only a commitment to it.</p>
      </${Card}>`;
}

/** Check a proof here: the bytes of the line, the way up to the root, and the signature of the head. */
async function checked(index, proof) {
  const steps = [];
  const step = async (name, work) => {
    try {
      steps.push({ name, state: "ok", detail: (await work()) ?? "" });
      return true;
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault;
      steps.push({ name, state: "broken", detail: fault.problem });
      return false;
    }
  };
  const response = await fetch(`/v1/audit/lines?start=${index}&limit=1`, { credentials: "same-origin" });
  const line = new Uint8Array(await response.arrayBuffer());
  const leaf = await leafHash(line);
  await step("The line has the hash that stands in it", async () => (await readLine(line, index)).hash);
  await step("The line is a leaf of the tree with the root of the head", async () => {
    const head = parseHead(parseNote(new TextEncoder().encode(proof.note)).text);
    if (proof.index !== index) throw new Fault("proof", `the proof is for entry ${proof.index}`);
    await verifyInclusion(leaf, index, head.size, proof.hashes.map((hash) => fromBase64(hash,
      "a hash of the proof")), head.root);
    return `${proof.hashes.length} hashes up to the root of ${head.size} entries`;
  });
  steps.push(await signed(proof));
  return { steps, leaf: hex(leaf) };
}

async function signed(proof) {
  const name = "The head is signed by the log's key";
  try {
    const own = ownKeys.read();
    const note = parseNote(new TextEncoder().encode(proof.note));
    const keys = await Promise.all((own.length ? own : proof.keys).map(parseVkey));
    const found = await checkSignatures(note, keys, parseHead(note.text).origin);
    const whose = own.length ? "by a key that you gave" : "by a key that the server named";
    if (found.state === "valid") return { name, state: "ok", detail: whose };
    if (found.state === "unchecked") return { name, state: "unchecked",
      detail: `signature not checked: ${found.detail}` };
    return { name, state: "broken", detail: found.detail };
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault;
    return { name, state: "broken", detail: fault.problem };
  }
}

function Proof({ index, row, result, setResult }) {
  const proof = useGet(path`/audit/entries/${index}/proof`, { when: row.is_anchored });
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    setResult(null);
    if (!proof.data || !canVerify()) return;
    checked(index, proof.data).then(setResult, setProblem);
  }, [proof.data]);
  const title = html`Proof <${Term} word="proof" />`;
  if (row.problem) {
    return html`<${Card} title=${title}><${Empty} title="A broken entry has no proof"
      text="What stands here is not what was committed, so it is not in the tree. Verify the log to see how far it can be trusted.">
      <p><a href=${to.audit()}>To the verification</a></p></${Empty}></${Card}>`;
  }
  if (!row.is_anchored) {
    return html`<${Card} title=${title}><${Empty} title="No signed head covers this entry yet"
      text="A proof leads from the entry to a signed head." command="holdfast audit anchor" /></${Card}>`;
  }
  return html`<${Card} title=${title} actions=${html`<${Button} icon="download" scope="audit:read"
    onClick=${() => download(index)}>.tlog-proof</${Button}>`}>
    <${Loaded} of=${proof} lines=${4}>${(found) => html`<div data-testid="proof">
      ${canVerify() ? null
        : html`<p>Not checked here: this browser lets pages compute hashes only over HTTPS, or from this machine.</p>`}
      <${Problem} problem=${problem} />
      ${result ? html`<${Steps} steps=${result.steps} />` : null}
      <${Facts} items=${[["Entries in that tree", found.size], ["Leaf", result && html`<${Hash}
        value=${result.leaf} />`], ["Root (base64)", html`<${Hash} value=${found.root} />`]]} />
      <details><summary>The hashes, and the signed head</summary>
        <ol class="hashes">${found.hashes.map((hash) => html`<li><code>${hash}</code></li>`)}</ol><pre
          class="raw" tabindex="0">${found.note}</pre></details>
      <${Command} text=${`holdfast audit proof ${quoted(`${row.session_id}#${row.seq}`)} --out entry-${index}.tlog-proof`}
        />
    </div>`}</${Loaded}></${Card}>`;
}

function Steps({ steps }) {
  const tones = { ok: ["ok", "check", "right"], broken: ["bad", "cross", "wrong"], unchecked: ["warn",
    "question", "not checked"] };
  return html`<ul class="steps" data-testid="proof-steps">${steps.map(({ name, state, detail }) => {
    const [tone, icon, word] = tones[state];
    return html`<li data-state=${state}><${Badge} tone=${tone} icon=${icon}>${word}</${Badge}> ${name}<span
      class="muted">${short(detail, 90)}</span></li>`;
  })}</ul>`;
}

async function download(index) {
  try {
    const text = await getText(path`/audit/entries/${index}/proof`, { accept: "text/plain" });
    save(new Blob([text], { type: "text/plain" }), `entry-${index}.tlog-proof`);
  } catch (problem) {
    toast(problem.message, "bad");
  }
}

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
