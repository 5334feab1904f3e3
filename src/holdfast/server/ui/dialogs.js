// The acting dialogs by their names: act("recover", {workflow_id}) of parts.js shows one.

import { Approve, AskCheckpoint, Cancel, Pause } from "./dialogs_asking.js";
import { Drop, Export, Pin, Prune, Release, Revalidate, SetAside, Unpin, Validate } from "./dialogs_care.js";
import { Fork, Recover, Replay, Resume } from "./dialogs_recovery.js";
import { Reveal } from "./dialogs_reveal.js";


export const DIALOGS = {
  // Few say something: it is loaded for those.
  annotate: { load: async () => (await import("./dialogs_noting.js")).Annotate },
  approve: Approve,
  answer: Approve,
  cancel: Cancel,
  checkpoint: AskCheckpoint,
  drop: Drop,
  export: Export,
  fork: Fork,
  pause: Pause,
  pin: Pin,
  prune: Prune,
  quarantine: SetAside,
  recover: Recover,
  release: Release,
  replay: Replay,
  resume: Resume,
  reveal: Reveal,
  revalidate: Revalidate,
  unpin: Unpin,
  validate: Validate,
};
