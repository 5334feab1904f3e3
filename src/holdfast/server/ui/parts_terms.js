// Words that need an explanation, and the mark that gives it.

import { html, useId, useState } from "./vendor/preact.js";

// By the words that the pages use.
export const TERMS = {
  checkpoint: "The whole state of a run at one moment, checked by a checksum, from which it can go on.",
  run: "One workflow with all its checkpoints and events. On the command line and in code: a workflow.",
  lease: "The right of one process to write a run. While it is held, nobody else can.",
  quarantine: "Where a checkpoint goes that is damaged or suspect: kept as evidence, never used to go on.",
  "audit trail": "The log of everything that was done, by whom. It is a Merkle tree: no entry can be changed unseen.",
  "signed head": "The log's size and root, signed and kept outside of the store. It shows if newer entries were cut off.",
  proof: "The few hashes that show that an entry is part of the log with that head.",
  fork: "A new run that begins with the state of a checkpoint of another one; that one stays as it is.",
  effect: "Something outside that a step does, like a payment or a message. It should not happen twice.",
  "legal hold": "What is under it is not removed, whatever the retention says.",
  pruned: "The state of this checkpoint was removed by the retention; that it was there is still known.",
  "whole to stored": "How much smaller the store is because equal pieces of states are kept once.",
  "could go": "Bytes that nothing needs any more; the next sweep frees them.",
  checksum: "SHA-256 of the state as it is stored: the name of exactly this content.",
  "last good checkpoint": "The newest that is neither in quarantine nor known to be damaged: from there a run goes on.",
  "shorten idle times": "Long times in which nothing happened are drawn short, and marked.",
};

export function Term({ word }) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const said = TERMS[word];
  if (!said) return null;
  return html`<span class="term"><button type="button" aria-label=${`What is meant by ${word}?`}
    aria-expanded=${isOpen ? "true" : "false"} aria-describedby=${isOpen ? id : null}
    title=${said} onClick=${(event) => { event.preventDefault(); setOpen(!isOpen); }} onBlur=${() =>
      setOpen(false)}
    onKeyDown=${(event) => { if (event.key === "Escape" && isOpen) { event.stopPropagation(); setOpen(false);
      } }}>?</button>
    ${isOpen ? html`<span role="tooltip" id=${id}>${said}</span>` : null}</span>`;
}
