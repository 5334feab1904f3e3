// The Merkle tree of RFC 6962, by Web Crypto alone: hashes, roots, proofs of inclusion and of consistency.
// Nothing here asks the server for anything.

export const HASH_BYTES = 32;
// Leaves that are hashed at once; a batch is a perfect subtree, so that batches join to one tree.
export const BATCH = 256;
const BATCH_LEVEL = 8;

/** What is wrong with evidence: `kind` says of what, `index` names the first leaf concerned. */
export class Fault extends Error {
  constructor(kind, problem, { place = "", index = null, session = "", seq = null } = {}) {
    super(problem);
    Object.assign(this, { name: "Fault", kind, problem, place, index, session, seq });
  }

  plain() {
    const { kind, problem, place, index, session, seq } = this;
    return { kind, problem, place, index, session, seq };
  }
}

export async function sha256(bytes) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

export function concat(...parts) {
  const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function isSame(a, b) {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}

export function leafHash(line) {
  return sha256(concat(Uint8Array.of(0), line));
}

export function nodeHash(left, right) {
  return sha256(concat(Uint8Array.of(1), left, right));
}

/** The root over a row of equally high subtrees, leaves for instance. */
export async function rootOf(hashes) {
  if (!hashes.length) return sha256(new Uint8Array());
  let row = hashes;
  while (row.length > 1) {
    const pairs = [];
    for (let at = 0; at + 1 < row.length; at += 2) pairs.push(nodeHash(row[at], row[at + 1]));
    const above = await Promise.all(pairs);
    // The odd one waits for a partner further up.
    row = row.length % 2 ? [...above, row[row.length - 1]] : above;
  }
  return row[0];
}

/** Grows by batches of leaves, and knows its root at every size inside the batch that was added last. */
export class Tree {
  constructor() {
    this.size = 0;
    this.peaks = [];
    this.rest = [];
  }

  /** Add the hashes of leaves; all batches but the last have exactly BATCH of them. */
  async add(leaves) {
    if (this.rest.length) throw new Error("a batch that is not full is the last one");
    if (leaves.length === BATCH) await this.#join(await rootOf(leaves));
    else this.rest = leaves;
    this.size += leaves.length;
  }

  async #join(subtree) {
    let at = this.size >> BATCH_LEVEL;
    while (at & 1) {
      subtree = await nodeHash(this.peaks.pop(), subtree);
      at >>= 1;
    }
    this.peaks.push(subtree);
  }

  root() {
    return this.rootWith(this.rest);
  }

  /** The root that the tree has with these leaves after all full batches. */
  async rootWith(leaves) {
    const peaks = leaves.length ? [...this.peaks, await rootOf(leaves)] : this.peaks;
    if (!peaks.length) return rootOf([]);
    let joined = peaks[peaks.length - 1];
    for (let at = peaks.length - 2; at >= 0; at--) joined = await nodeHash(peaks[at], joined);
    return joined;
  }
}

const half = (number) => Math.floor(number / 2);
const isOdd = (number) => number % 2 === 1;

function checkHashes(hashes, what) {
  if (!hashes.every((hash) => hash instanceof Uint8Array && hash.length === HASH_BYTES)) {
    throw new Fault("proof", `${what} holds something that is no SHA-256 hash`);
  }
}

/** Check that a leaf, given by its hash, is in the tree with that root; throws a Fault if it is not. */
export async function verifyInclusion(leaf, index, size, proof, root) {
  if (!Number.isSafeInteger(index) || !Number.isSafeInteger(size) || index < 0 || index >= size) {
    throw new Fault("proof", `a tree of ${size} leaves has no leaf ${index}`);
  }
  checkHashes([leaf, root, ...proof], "a proof of inclusion");
  let at = index;
  let last = size - 1;
  let computed = leaf;
  for (const sibling of proof) {
    if (last === 0) throw new Fault("proof", `the proof for leaf ${index} of ${size} is too long`, { index });
    if (isOdd(at) || at === last) {
      computed = await nodeHash(sibling, computed);
      while (!isOdd(at) && at) [at, last] = [half(at), half(last)];
    } else {
      computed = await nodeHash(computed, sibling);
    }
    [at, last] = [half(at), half(last)];
  }
  if (last) throw new Fault("proof", `the proof for leaf ${index} of ${size} is too short`, { index });
  if (!isSame(computed, root)) {
    throw new Fault("proof", `leaf ${index} is not in the tree of ${size} leaves with that root`, { index });
  }
}
