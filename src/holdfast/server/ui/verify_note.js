// Signed notes and tree heads (C2SP), read strictly: everything has one spelling.

import { Fault, HASH_BYTES, concat, hex, isSame, sha256 } from "./verify_merkle.js";

const DASH = "\u2014 ";
const ED25519 = 1;
const COSIGNATURE = 4;
const KEY_ID_BYTES = 4;
const TIME_BYTES = 8;
const SIGNATURE_BYTES = 64;
const NUMBER = /^(?:0|[1-9][0-9]{0,15})$/;
const VKEY = /^([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)$/;
const BAD_NAME = /[\s+\u0000-\u001f]/;

const encoder = new TextEncoder();
const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function fromBase64(text, what, place = "") {
  let bytes = new Uint8Array();
  try {
    bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  } catch {
    // Told below.
  }
  // Else two texts would stand for one signature.
  if (!bytes.length || toBase64(bytes) !== text) throw new Fault("head", `${what} is not in base64`, { place });
  return bytes;
}

export function toBase64(bytes) {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

function decode(bytes, what) {
  let text;
  try {
    text = strictDecoder.decode(bytes);
  } catch {
    throw new Fault("head", `${what} is not UTF-8`);
  }
  if (/[\u0000-\u0009\u000b-\u001f]/.test(text)) throw new Fault("head",
    `${what} has a control character in it`);
  return text;
}

/** Read a public key, `name+id+key`. */
export async function parseVkey(text) {
  const found = VKEY.exec(text);
  if (!found || BAD_NAME.test(found[1])) {
    throw new Fault("key", "this is not a public key: it does not read like name+id+key");
  }
  const [, name, id, encoded] = found;
  const material = fromBase64(encoded, "a public key");
  const kind = material[0];
  if (![ED25519, COSIGNATURE].includes(kind) || material.length !== 33) {
    throw new Fault("key", "this is not a public key of a kind that is known");
  }
  const full = await sha256(concat(encoder.encode(`${name}\n`), material));
  const ownId = full.slice(0, KEY_ID_BYTES);
  if (hex(ownId) !== id) throw new Fault("key", `this is not a public key: its id should be ${hex(ownId)}`);
  return { name, id: ownId, kind, publicKey: material.slice(1), text };
}

/** Read a signed note into its text and its signatures, none of which is checked yet. */
export function parseNote(bytes) {
  const text = decode(bytes, "a signed note");
  const split = text.lastIndexOf("\n\n");
  if (split < 0 || !text.endsWith("\n")) {
    throw new Fault("head", "a signed note has no signatures below an empty line, or no end");
  }
  const lines = text.slice(split + 2, -1).split("\n");
  if (lines.length > 100) throw new Fault("head", `a signed note has ${lines.length} signatures`);
  return { text: text.slice(0, split + 1), signatures: lines.map(parseSignature) };
}

function parseSignature(line) {
  const [name, encoded, more] = line.startsWith(DASH) ? line.slice(DASH.length).split(" ") : [];
  if (!name || !encoded || more !== undefined || BAD_NAME.test(name)) {
    throw new Fault("head", "a line of a signed note is no signature");
  }
  const data = fromBase64(encoded, "a signature");
  if (data.length <= KEY_ID_BYTES) throw new Fault("head", "a signature is too short");
  return { name, keyId: data.slice(0, KEY_ID_BYTES), data: data.slice(KEY_ID_BYTES) };
}

function parseNumber(text, what) {
  if (!NUMBER.test(text) || !Number.isSafeInteger(Number(text))) throw new Fault("head",
    `${what} is not a number`);
  return Number(text);
}

/** Read the text of a note as a tree head: name of the log, size, root. */
export function parseHead(text) {
  const lines = text.split("\n");
  if (lines.length !== 4 || lines[3]) throw new Fault("head", "a tree head does not have three lines");
  const [origin, size, encoded] = lines;
  if (!origin) throw new Fault("head", "a tree head does not name its log");
  const root = fromBase64(encoded, "the root of a tree head");
  if (root.length !== HASH_BYTES) throw new Fault("head", "the root of a tree head is no SHA-256 hash");
  return { origin, size: parseNumber(size, "the size of a tree head"), root };
}

let ed25519Support = null;

/** Whether this browser can check Ed25519 signatures. */
function canCheckSignatures() {
  ed25519Support ??= crypto.subtle.importKey("raw", BASE_POINT, "Ed25519", false, ["verify"]).then(
    () => true,
    () => false,
  );
  return ed25519Support;
}

// The base point of the curve: a public key that every implementation takes.
const BASE_POINT = Uint8Array.from({ length: 32 }, (_, at) => (at ? 0x66 : 0x58));

async function isSigned(publicKey, message, signature) {
  const key = await crypto.subtle.importKey("raw", publicKey, "Ed25519", false, ["verify"]);
  return crypto.subtle.verify("Ed25519", key, signature, message);
}

/**
 * Check the signatures of known keys; those of others are passed over.
 * Answers {state, signers, detail}; state: valid, invalid, unknown (no known key signed), unchecked.
 */
export async function checkSignatures(note, keys, origin) {
  if (!(await canCheckSignatures())) {
    return { state: "unchecked", signers: [], detail: "this browser has no Ed25519" };
  }
  const signers = [];
  for (const signature of note.signatures) {
    const key = keys.find((one) => one.name === signature.name && isSame(one.id, signature.keyId));
    if (!key || signers.some((one) => one.text === key.text)) continue;
    if (!(await isRight(key, note.text, signature))) {
      return { state: "invalid", signers: [], detail: `a signature of ${key.name} is not over this text` };
    }
    signers.push(key);
  }
  const own = signers.filter((key) => key.kind === ED25519 && key.name === origin);
  if (own.length) return { state: "valid", signers: signers.map((key) => key.text), detail: "" };
  return { state: "unknown", signers: [], detail: `no known key of ${origin} signed the head` };
}

async function isRight(key, text, signature) {
  let [message, proof] = [encoder.encode(text), signature.data];
  if (key.kind === COSIGNATURE) {
    if (proof.length !== TIME_BYTES + SIGNATURE_BYTES) return false;
    const seconds = new DataView(proof.buffer, proof.byteOffset, TIME_BYTES).getBigUint64(0);
    message = encoder.encode(`cosignature/v1\ntime ${seconds}\n${text}`);
    proof = proof.slice(TIME_BYTES);
  }
  return proof.length === SIGNATURE_BYTES && isSigned(key.publicKey, message, proof);
}
