// Showing what is masked in a state, to somebody who says why.

import { html } from "./vendor/preact.js";
import { path, send } from "./api.js";
import { Copy, Facts, Loaded, countText, short } from "./parts.js";
import { to } from "./router.js";
import { Acting, Listed, usePlan } from "./dialogs_frame.js";

export function Reveal({ checkpoint, pointer = "", onClose }) {
  const body = { path: pointer };
  const plan = usePlan(path`/checkpoints/${checkpoint}/reveal/plan`, body);
  const stop = plan.problem ? "There is no plan." : !plan.data || plan.isLoading ? "The plan is on its way."
    : plan.data.refusals.length ? "It would be refused, see the plan." : "";
  return html`<${Acting} title=${`Reveal ${short(pointer || checkpoint, 40)}`} onClose=${onClose}
    scope="state:reveal" verb="Reveal" isWide stop=${stop} command=${plan.data?.command} Result=${Revealed}
    run=${({ reason, key }) => send("POST", path`/checkpoints/${checkpoint}/reveal`, { ...body, reason }, {
      key })}>
    <${Loaded} of=${plan} lines=${3}>${(data) => html`<section class="plan" aria-label="Plan"
      data-testid="plan"><h3>What would happen</h3>
      <${Facts} items=${[["Of", html`<a href=${to.checkpoint(data.checkpoint)}>${data.checkpoint}</a>`],
        ["Place", html`<code>${data.pointer || "the whole state"}</code>`],
        ["Secrets that were hidden", countText(data.hidden)],
        ["Values under a person's seal", countText(data.sealed)]]} />
      <${Listed} title="Why it would be refused" items=${data.refusals} tone="bad" />
      <${Listed} title="What would stay masked" items=${data.warnings} tone="warn" />
      ${data.places.length > 1 ? html`<${Listed} title="Where" items=${data.places} />` : null}
      <p class="muted">That you looked, and why, is in the trail before it is shown. It is shown here alone, and kept nowhere.</p>
        </section>`}</${Loaded}>
  </${Acting}>`;
}

function Revealed({ answer }) {
  const text = typeof answer.value === "string" ? answer.value : JSON.stringify(answer.value, null, 2);
  return html`<p class="chosen-head"><code>${answer.pointer || answer.checkpoint}</code><${Copy} text=${text}
    label="Copy the value" /></p>
    <pre class="raw" tabindex="0" data-testid="revealed">${text}</pre>
    <${Listed} title="Still masked: nobody knows the secret any more" items=${answer.left} tone="warn" />
    <p class="muted">It is gone from here when this is closed.</p>`;
}
