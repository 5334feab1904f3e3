// Saying something about a checkpoint: labels and a note, beside what never changes.

import { html, useState } from "./vendor/preact.js";
import { path, send } from "./api.js";
import { Field, short } from "./parts.js";
import { to } from "./router.js";
import { Acting } from "./dialogs_frame.js";
import { versionOf } from "./dialogs_care.js";

const LABELS_MAX = 20, LABEL_CHARS = 80, NOTE_CHARS = 2000;

const split = (text) => [...new Set(text.split(",").map((one) => one.trim()).filter(Boolean))];

/** Why labels cannot be what was written; empty where they can. */
function lacking(labels) {
  if (labels.length > LABELS_MAX) return `At most ${LABELS_MAX} labels.`;
  return labels.some((one) => one.length > LABEL_CHARS) ? `A label has at most ${LABEL_CHARS} characters.` : "";
}

export function Annotate({ checkpoint, labels: given = [], note: before = "", onClose, onDone }) {
  const [labels, setLabels] = useState(given.join(", "));
  const [note, setNote] = useState(before);
  const wanted = split(labels);
  const isLabelled = labels !== given.join(", "), isNoted = note.trim() !== before;
  // The version that was looked at, not the one that is there by the time somebody has written a note.
  const [version] = useState(() => versionOf(checkpoint).catch((problem) => problem));
  const run = async ({ reason, key }) => {
    const seen = await version;
    if (seen instanceof Error) throw seen;
    // Whoever may not see the note must not take it away; and an old label may have a comma in it.
    const said = { ...(isLabelled && { labels: wanted }), ...(isNoted && { note: note.trim() }) };
    return send("PATCH", path`/checkpoints/${checkpoint}`, { ...said, reason }, { key,
      headers: { "If-Match": seen } });
  };
  return html`<${Acting} title=${`Annotate ${short(checkpoint, 40)}`} onClose=${onClose} onDone=${onDone}
    scope="write" verb="Annotate" stop=${isLabelled ? lacking(wanted) : isNoted ? "" : "Nothing is changed yet."}
    run=${run} Result=${Annotated}>
    <section class="plan" aria-label="Plan" data-testid="plan"><p>The checkpoint stays as it is: what you say is kept beside it, in the run's events, with your name. It can be erased with the run.</p></section>
    <${Field} label="Labels" hint="With commas between them."><input type="text" name="labels" value=${labels}
      autocomplete="off" onInput=${(event) => setLabels(event.currentTarget.value)} /></${Field}>
    <${Field} label="Note"><textarea name="note" rows="4" maxlength=${NOTE_CHARS} value=${note}
      onInput=${(event) => setNote(event.currentTarget.value)}></textarea></${Field}></${Acting}>`;
}

const Annotated = ({ answer }) => html`<p><a href=${to.checkpoint(answer.id)}>${answer.id}</a> has ${
  answer.labels.length ? `the labels ${answer.labels.join(", ")}` : "no labels"}${answer.note ? " and a note" : ""}.</p>`;
