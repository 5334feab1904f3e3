// What a verification came to, in words: what was covered, what was not, and the first bad row.

import { html, useState } from "../vendor/preact.js";
import { Badge, Button, Card, Command, Count, Facts, Field, Problem, Progress, Status, Term, Time, countText,
  short, spanText } from "../parts.js";
import { to } from "../router.js";
import { checkProblem, checking, lastCheck, ownKeys, ownPin, verifyInBrowser,
  verifyOnServer } from "../trail_check.js";

const SHOWN = 10;

const SAID = {
  ok: "Nothing is wrong with what was covered.",
  inconclusive: "Nothing is wrong, and nothing from outside of the store vouches for it.",
  failed: "The log is not what was committed.",
};

function said(result) {
  if (result.verdict === "inconclusive" && result.untold?.length) {
    const many = result.untold.length === 1 ? "a workflow" : `${countText(result.untold.length)} workflows`;
    return `What is there is right, and tells nothing of ${many} of this store: was the trail switched off?`;
  }
  const isWhole = result.verdict === "failed" && !result.broken.length && !result.missing.length;
  return isWhole ? "The log is not what was signed, or not what was seen before." : SAID[result.verdict];
}

const SIGNATURES = {
  valid: ["ok", "check", "signature right"],
  invalid: ["bad", "cross", "signature wrong"],
  unknown: ["bad", "question", "signed by no known key"],
  unchecked: ["warn", "question", "signature not checked"],
  none: ["warn", "warn", "no signed head"],
};

export default function VerdictCard({ head }) {
  const busy = checking.value;
  return html`<${Card} title="Verification" actions=${html`<${Buttons} busy=${busy} />`}>
    <div class="verdict-card" aria-live="polite">
      ${busy ? html`<${Progress} done=${busy.done} total=${busy.total}
        unit=${`entries checked ${busy.by === "server" ? "by the server" : "in this browser"}`} />` : null}
      <${Problem} problem=${checkProblem.value} />
      ${lastCheck.value ? html`<${Verdict} check=${lastCheck.value} />` : html`<p
        class="muted">Nothing was checked yet on this page.
        The server can check its own log; this browser can check it without believing the server.</p>`}
      <${Head} head=${head} />
      <${Trust} check=${lastCheck.value} />
    </div></${Card}>`;
}

function Buttons({ busy }) {
  const isBusy = (by) => busy?.by === by;
  return html`<${Button} scope="audit:read" isBusy=${isBusy("server")} disabled=${busy}
    onClick=${verifyOnServer} data-testid="verify-server">Verify</${Button}>
    <${Button} kind="primary" scope="audit:read" isBusy=${isBusy("browser")} disabled=${busy}
      onClick=${verifyInBrowser}
      data-testid="verify-browser">Verify in this browser</${Button}>`;
}

function Verdict({ check: { by, at, result } }) {
  const first = result.faults[0];
  return html`<div class="verdict ${result.verdict}" data-testid="verdict" data-verdict=${result.verdict}
    data-by=${by}>
    <p class="verdict-line"><${Status} value=${result.verdict} /> <strong>${said(result)}</strong></p>
    <p data-testid="coverage">${result.unanchored ? html`<${Status} value="unanchored" /> `
      : null}${coverage(result)} ${by === "server" ? "By the server"
      : "In this browser"}, at ${new Date(at).toLocaleTimeString()}${result.milliseconds
      ? html`, in ${spanText(result.milliseconds)}` : null}.</p>
    ${first ? html`<p data-testid="first-bad"><strong>First bad row:</strong> <${Where} fault=${first} /></p>`
      : null}
    ${result.signature ? html`<${Evidence} result=${result} />` : html`<p>Level reached: ${result.level}.</p>`}
    ${result.faultCount > 1 ? html`<${Faults} result=${result} />` : null}
  </div>`;
}

/** How far it goes, never leaving out what it does not cover. */
export function coverage(result) {
  if (!result.checked) return "No entry was there to be checked.";
  return `Entries 1..${countText(result.checked)} checked, ${countText(result.unanchored)} not anchored.`;
}

function Where({ fault }) {
  const text = `${fault.problem}${fault.place ? ` (${short(fault.place, 90)})` : ""}`;
  if (fault.index === null) return html`<span>${text}</span>`;
  return html`<a href=${to.entry(fault.index)}>entry ${fault.index}</a><span>: ${text}</span>`;
}

function Faults({ result }) {
  const rest = result.faultCount - Math.min(result.faults.length, SHOWN);
  return html`<details><summary>All that is wrong: <${Count} value=${result.faultCount} /></summary>
    <ol class="faults">${result.faults.slice(0, SHOWN).map((fault) => html`<li><${Where} fault=${fault} />
      </li>`)}</ol>
    ${rest > 0 ? html`<p class="muted">and ${countText(rest)} more</p>` : null}</details>`;
}

function Evidence({ result }) {
  const [tone, icon, word] = SIGNATURES[result.signature.state];
  const key = result.isOwnKey ? "your key" : "a key that the server named";
  return html`<p class="badges"><${Badge} tone=${tone} icon=${icon} title=${result.signature.detail}>${word}
    </${Badge}>
      ${result.signature.state === "valid" ? html`<span class="muted">by ${key}</span>` : html`<span
        class="muted">${result.signature.detail}</span>`}
      ${result.pinned ? html`<${Badge} tone="ok"
        icon="pin">goes on from entry ${countText(result.pinned)}, seen before</${Badge}>` : null}</p>
    <p class="muted">${countText(result.sessions)} sessions, ${countText(result.openSessions)} of them open${result.clockSteps
      ? `; a clock stepped back ${countText(result.clockSteps)} times` : ""}.
      Root: <code title=${result.rootHex}>${result.rootHex.slice(0, 16)}…</code></p>`;
}

function Head({ head }) {
  if (!head) return null;
  const waiting = head.size - head.anchored;
  return html`<${Facts} items=${[
    ["Log", head.origin && html`<code>${short(head.origin, 52)}</code>`],
    ["Entries", html`<${Count} value=${head.size} />`],
    ["Covered by the newest signed head", html`<${Count} value=${head.anchored} /> <${Term} word="signed head" />`],
    ["Not anchored", waiting ? html`<${Status} value="unanchored" /> <${Count} value=${waiting} />` : "0"],
  ]} />${head.anchored ? null : html`<p>No head was signed yet. Sign one, and keep it elsewhere:</p><${Command}
    text="holdfast audit anchor --pin head.txt" />`}`;
}

// What is remembered changes with every check, which is handed in so that this is drawn anew.
function Trust() {
  const [text, setText] = useState(ownKeys.read().join("\n"));
  const [, again] = useState(0);
  const pin = ownPin.read();
  const save = (event) => {
    setText(event.currentTarget.value);
    ownKeys.write(event.currentTarget.value.split("\n").map((line) => line.trim()).filter(Boolean));
  };
  const forget = () => {
    ownPin.forget();
    again((count) => count + 1);
  };
  return html`<details class="trust"><summary>What this browser believes</summary>
    <${Field} label="Public keys of the log that you were given by another way"
      hint="One on a line, name+id+key. Without one, the keys that the server names are used: who has the server could name others.">
      <textarea rows="2" spellcheck=${false} value=${text} onInput=${save} data-testid="own-keys"></textarea>
        </${Field}>
    ${pin ? html`<p>This browser remembers the head of <${Count} value=${pin.size} /> entries, seen <${Time}
      at=${pin.at} />: the log must go on from there.
      <${Button} kind="quiet" onClick=${forget}>Forget it</${Button}></p>`
    : html`<p class="muted">This browser has verified no earlier head of this log. After the next verification it remembers that one, and sees if the log is put back to an older state.</p>`}
  </details>`;
}
