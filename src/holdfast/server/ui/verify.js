// Verification of the log in the browser. What the server says about itself is not believed: every line is
// hashed here, chained here, put into the tree here, and the signed head is compared with what came out.

import { BATCH, Fault, Tree, hex, isSame, leafHash } from "./verify_merkle.js";
import { checkSignatures, fromBase64, parseHead, parseNote, parseVkey, toBase64 } from "./verify_note.js";
import { Chains, claimOf, readLine, splitLines } from "./verify_trail.js";

export * from "./verify_merkle.js";
export * from "./verify_note.js";
export * from "./verify_trail.js";

const FAULTS_MAX = 100;
const PLACES_MAX = 10_000;

/** Whether this page may use Web Crypto at all: browsers refuse it to pages from elsewhere over plain HTTP. */
export function canVerify() {
  return Boolean(globalThis.isSecureContext && globalThis.crypto?.subtle);
}

/**
 * Check a whole log.
 *
 * readHead() answers {note, keys}: the signed head as text (empty if none) and the public keys.
 * total, if it is there, says how many lines there are.
 * readLines(from, most) answers the bytes of the next lines, not more than so many; empty at the end.
 * trust: {keys, pins}: public keys and heads ({origin,size,root}) known from elsewhere than the server.
 */
export async function verifyLog({ readHead, readLines, trust = {}, onProgress = () => {}, signal = null }) {
  const began = performance.now();
  const faults = new Faults();
  const told = await readHead();
  const head = await readMark(told, trust, faults);
  const marks = [...head.marks, ...pinMarks(trust.pins ?? [], head.origin, faults)];
  const walk = new Walk(marks, faults);
  const largest = Math.max(0, ...marks.map((mark) => mark.size));
  // Reading is told in the trail, too, which so grows while it is read: the end is where it was at first.
  const end = told.total ? Math.max(told.total, largest) : Infinity;
  while (walk.size < end) {
    const bytes = await readLines(walk.size, end - walk.size);
    if (!bytes.length) break;
    signal?.throwIfAborted();
    await walk.take(splitLines(bytes).slice(0, end - walk.size));
    onProgress({ done: walk.size, total: Math.max(Number.isFinite(end) ? end : largest, walk.size) });
  }
  await walk.finish();
  return report(walk, head, faults, performance.now() - began);
}

async function readMark({ note, keys = [] }, trust, faults) {
  const nothing = { origin: "", marks: [], signature: { state: "none", signers: [], detail: "" },
    isOwnKey: false };
  if (!note) return nothing;
  try {
    const isOwnKey = Boolean(trust.keys?.length);
    const vkeys = isOwnKey ? trust.keys : keys;
    const parsed = parseNote(new TextEncoder().encode(note));
    const head = parseHead(parsed.text);
    const known = await Promise.all(vkeys.map(parseVkey));
    const signature = await checkSignatures(parsed, known, head.origin);
    if (signature.state === "invalid" || (signature.state === "unknown" && known.length)) {
      faults.add(new Fault("head", signature.detail, { place: `signed head of size ${head.size}` }));
    }
    const mark = { ...head, kind: "head", place: `signed head of size ${head.size}` };
    return { origin: head.origin, marks: [mark], signature, isOwnKey };
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault;
    faults.add(new Fault("head", fault.problem, { place: "signed head" }));
    return nothing;
  }
}

function pinMarks(pins, origin, faults) {
  const marks = [];
  for (const pin of pins) {
    const place = `head of size ${pin.size} that this browser remembers`;
    if (origin && pin.origin !== origin) {
      faults.add(new Fault("pin", `the log was called ${pin.origin.slice(0, 80)} before`, { place }));
    } else {
      const root = fromBase64(pin.root, "the root of a remembered head");
      marks.push({ origin: pin.origin, size: pin.size, root, kind: "pin", place });
    }
  }
  return marks;
}

/** Counts all faults and keeps the first ones; of those in lines every place, for marks in a list. */
class Faults {
  constructor() {
    this.count = 0;
    this.kept = [];
    this.broken = new Set();
    this.missing = new Set();
  }

  add(fault) {
    this.count += 1;
    if (fault.index !== null && fault.kind === "entry") {
      const places = fault.problem.includes("is not there") ? this.missing : this.broken;
      if (places.size < PLACES_MAX) places.add(fault.index);
    }
    this.kept.push(fault);
    this.kept.sort((a, b) => (a.index ?? Infinity) - (b.index ?? Infinity) || 0);
    this.kept.length = Math.min(this.kept.length, FAULTS_MAX);
  }
}

/** Goes through the lines once: each is a link of its chain and a leaf of the tree by the very same bytes. */
class Walk {
  constructor(marks, faults) {
    this.tree = new Tree();
    this.chains = new Chains();
    this.size = 0;
    this.fitting = [];
    this.faults = faults;
    this.leaves = [];
    this.goodSize = 0;
    this.marks = [...marks].sort((a, b) => a.size - b.size);
  }

  async take(lines) {
    for (let at = 0; at < lines.length; ) {
      const part = lines.slice(at, at + BATCH - this.leaves.length);
      await this.#takePart(part);
      at += part.length;
    }
  }

  async #takePart(lines) {
    const first = this.size;
    const hashes = Promise.all(lines.map((line) => leafHash(line)));
    const read = lines.map((line, at) => readOne(line, first + at));
    for (const [at, found] of (await Promise.all(read)).entries()) this.#chain(found, first + at);
    this.leaves.push(...(await hashes));
    this.size += lines.length;
    await this.#compare();
    if (this.leaves.length === BATCH) {
      await this.tree.add(this.leaves);
      this.leaves = [];
    }
  }

  #chain(found, index) {
    try {
      if (found instanceof Fault) throw found;
      this.chains.take(found, index);
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault;
      this.faults.add(fault);
    }
  }

  /** Compare the tree with every head whose size was reached. */
  async #compare() {
    while (this.marks.length && this.marks[0].size <= this.size) {
      const mark = this.marks.shift();
      const root = await this.tree.rootWith(this.leaves.slice(0, mark.size - this.tree.size));
      if (isSame(root, mark.root)) {
        this.fitting.push(mark);
        this.goodSize = mark.size;
      } else {
        const told = `the entries are not those it was made for; look from entry ${this.goodSize} on`;
        this.faults.add(new Fault(mark.kind, told, { place: mark.place }));
      }
    }
  }

  async finish() {
    await this.#compare();
    for (const mark of this.marks) {
      const told = `the log ends before: entries ${this.size} to ${mark.size - 1} are not there`;
      this.faults.add(new Fault(mark.kind, told, { place: mark.place, index: this.size }));
    }
    this.root = await this.tree.rootWith(this.leaves);
  }
}

async function readOne(line, index) {
  if (line.length <= 1) return new Fault("entry", "an audit entry is not there", { place: `leaf ${index}`,
    index });
  try {
    return await readLine(line, index);
  } catch (fault) {
    return fault instanceof Fault ? fault : new Fault("entry", "it cannot be read", { ...claimOf(line),
      index });
  }
}

function report(walk, head, faults, milliseconds) {
  const largest = (marks) => marks.reduce((size, mark) => Math.max(size, mark.size), 0);
  const isSigned = head.signature.state === "valid";
  const signed = isSigned ? largest(walk.fitting.filter((mark) => mark.kind === "head")) : 0;
  const pinned = largest(walk.fitting.filter((mark) => mark.kind === "pin"));
  const anchored = Math.max(signed, pinned);
  return {
    verdict: verdictOf(faults, anchored),
    level: levelOf(faults, signed, pinned),
    checked: walk.size,
    entries: walk.chains.entries,
    sessions: walk.chains.heads.size,
    openSessions: [...walk.chains.heads.values()].filter((one) => !one.isClosed).length,
    clockSteps: walk.chains.clockSteps,
    anchored,
    unanchored: walk.size - Math.min(anchored, walk.size),
    signed,
    pinned,
    origin: head.origin,
    signature: head.signature,
    isOwnKey: head.isOwnKey,
    root: toBase64(walk.root),
    rootHex: hex(walk.root),
    faultCount: faults.count,
    faults: faults.kept.map((fault) => fault.plain()),
    broken: [...faults.broken],
    missing: [...faults.missing],
    milliseconds,
  };
}

function levelOf(faults, signed, pinned) {
  const has = (kind) => faults.kept.some((fault) => fault.kind === kind);
  if (faults.broken.size || faults.missing.size) return "none";
  if (has("head")) return "chain";
  if (pinned && !has("pin")) return "pinned head";
  return signed ? "signed head" : "chain";
}

function verdictOf(faults, anchored) {
  if (faults.count) return "failed";
  return anchored ? "ok" : "inconclusive";
}

/** What the check says about one row: verified, broken, missing, unanchored, or unchecked. */
export function rowState(result, index) {
  if (!result) return "unchecked";
  if (result.broken.includes(index)) return "broken";
  if (result.missing.includes(index)) return "missing";
  if (index >= result.checked) return "unchecked";
  return index < result.anchored ? "verified" : "unanchored";
}
