// Lines of the trail: each one checked by itself, and as what follows in the chain of its session.

import { Fault, concat, hex, sha256 } from "./verify_merkle.js";

const GENESIS = "GENESIS";
const FACTS_MAX = 19;
const CHARS_MAX = 512;
const HASH = /^sha256:[0-9a-f]{64}$/;
const TYPE = /^[A-Z][A-Z0-9_]{0,63}$/;
const FACT_NAME = /^[a-z][a-z0-9_]{0,31}$/;
const TIME = /^([0-9]{4}-[0-9]{2}-[0-9]{2})T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}\.[0-9]{6}Z$/;
const OUTCOMES = new Set(["success", "failure", "refused", "unknown"]);
const NAMES = ["id", "session", "workflow", "agent", "actor", "correlation"];
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g;
const QUOTE = 0x22;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const lenient = new TextDecoder("utf-8", { ignoreBOM: true });
const HASH_START = new TextEncoder().encode(',"hash":"');

/** Cut what the server sent into lines, each with its newline. */
export function splitLines(bytes) {
  const lines = [];
  let start = 0;
  for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
    lines.push(bytes.subarray(start, end + 1));
    start = end + 1;
  }
  if (start < bytes.length) lines.push(bytes.subarray(start));
  return lines;
}

function indexOf(bytes, wanted) {
  for (let at = bytes.indexOf(wanted[0]); at >= 0; at = bytes.indexOf(wanted[0], at + 1)) {
    if (wanted.every((byte, offset) => bytes[at + offset] === byte)) return at;
  }
  return -1;
}

/** Check a line's own hash; answers the fields that it holds, or throws a Fault. */
export async function readLine(line, index) {
  const found = indexOf(line, HASH_START);
  const start = found + HASH_START.length;
  const end = found < 0 ? -1 : line.indexOf(QUOTE, start);
  const claim = claimOf(line);
  const bad = (problem) => new Fault("entry", problem, { ...claim, index });
  if (end < 0) throw bad("an audit entry is not the one that was committed: it has no hash");
  const digest = hex(await sha256(concat(line.subarray(0, start), line.subarray(end))));
  if (lenient.decode(line.subarray(start, end)) !== `sha256:${digest}`) {
    throw bad("an audit entry is not the one that was committed");
  }
  const problem = {};
  const fields = parseLine(line, problem);
  const why = problem.text || (fields.hash !== `sha256:${digest}` && "another hash is seen by readers") ||
    shapeProblem(fields);
  if (why) throw bad(`a line is no audit entry here: ${why}`);
  return fields;
}

/** Name an entry by what its first bytes claim; nothing else of a bad line is believed. */
export function claimOf(line) {
  const text = lenient.decode(line.subarray(0, 2000));
  const found = /^\{"id":"([ !#-[\]-~]{1,255})","seq":([0-9]{1,15}),/.exec(text);
  const session = /"session":"([^"\\]{1,200})"/.exec(text)?.[1] ?? "";
  if (!found) return { place: "an audit line without id and sequence", session };
  const of = session ? ` of session ${session.slice(0, 80)}` : "";
  return { place: `audit entry ${found[2]} (${found[1]})${of}`, session, seq: Number(found[2]) };
}

function parseLine(line, problem) {
  try {
    const text = decoder.decode(line);
    if (line.indexOf(10) !== line.length - 1) problem.text = "it is not one object on one line";
    const fields = JSON.parse(text);
    if (fields === null || typeof fields !== "object" ||
      Array.isArray(fields)) problem.text = "it is no object";
    else problem.text ||= twoReadings(text);
    return fields ?? {};
  } catch {
    problem.text = "it is not JSON";
    return {};
  }
}

// A key that stands twice would let two readers see two entries in one line.
function twoReadings(text) {
  const open = [];
  const names = [];
  let last = "";
  for (const [token] of text.matchAll(TOKEN)) {
    const seen = open[open.length - 1];
    if (token === "{") open.push(new Set());
    else if (token === "[") open.push(null);
    else if (token === "}" || token === "]") open.pop();
    else if (token === ":" && seen) {
      const key = (names[open.length - 1] = JSON.parse(last));
      if (seen.has(key)) return "a key stands twice in it";
      seen.add(key);
    } else if (token[0] === '"' && token.includes("\\u") && !isWhole(JSON.parse(token))) {
      return "it has half a character";
    } else if (isCounted(open.length, names[0]) && /^-?[0-9].*[.eE]/.test(token)) {
      return "a number in it is not whole";
    }
    last = token;
  }
  return "";
}

const isCounted = (depth, name) => (depth === 1 && name === "seq") || (depth === 2 && name === "data");

function isWhole(text) {
  try {
    encodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

const isText = (text) =>
  typeof text === "string" && text !== "" && (text.length <= CHARS_MAX || [...text].length <= CHARS_MAX);
const isHash = (text) => typeof text === "string" && HASH.test(text);

function isTime(text) {
  const day = typeof text === "string" && TIME.exec(text)?.[1];
  if (!day || day < "0001") return false;
  const moment = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(moment.getTime()) && moment.toISOString().slice(0, 10) === day;
}

/** Say what keeps fields from being those of an entry; empty if nothing does. */
function shapeProblem(fields) {
  const wrong = NAMES.find((name) => name in fields && !isText(fields[name]));
  if (wrong) return `'${wrong}' is no short text`;
  if (!("id" in fields) || !("session" in fields)) return "it has no id or no session";
  if (!Number.isSafeInteger(fields.seq) || fields.seq <= 0) return "'seq' does not count from one";
  if (typeof fields.type !== "string" || !TYPE.test(fields.type)) return "'type' is not in capital letters";
  if (!OUTCOMES.has(fields.outcome)) return "'outcome' is none that is known";
  if (!isTime(fields.ts) || ("clock" in fields &&
    !isTime(fields.clock))) return "'ts' or 'clock' is no time in UTC";
  if ("clock" in fields && fields.clock >= fields.ts) return "'clock' is not before 'ts'";
  if (fields.prev_hash !== GENESIS && !isHash(fields.prev_hash)) return "'prev_hash' is no hash";
  return dataProblem(fields);
}

function dataProblem(fields) {
  const data = "data" in fields ? fields.data : {};
  if (data === null || typeof data !== "object" || Array.isArray(data)) return "'data' is no object";
  if ("payload" in data && !isHash(data.payload)) return "'payload' is no commitment";
  if (fields.type === "SESSION_CLOSED" && (data.last_seq !== fields.seq || data.head !== fields.prev_hash)) {
    return "it does not say where the session ends";
  }
  const facts = Object.entries(data);
  if (facts.length > FACTS_MAX) return `there are more than ${FACTS_MAX} facts`;
  const odd = facts.find(([name, fact]) => !FACT_NAME.test(name) || !isFact(fact));
  return odd ? `'${odd[0].slice(0, 40)}' is neither a short text nor a number` : "";
}

function isFact(fact) {
  if (typeof fact === "string") return fact === "" || isText(fact);
  return typeof fact === "boolean" || (typeof fact === "number" && Math.abs(fact) <= 2 ** 63);
}

/** Follows any number of chains at once, in whatever order their lines come. */
export class Chains {
  constructor() {
    this.heads = new Map();
    this.entries = 0;
    this.clockSteps = 0;
  }

  /** Check that an entry follows in its session; the chain is taken up from there whether it does or not. */
  take(fields, index) {
    const head = this.heads.get(fields.session) ?? { seq: 0, hash: GENESIS, ts: "", isClosed: false };
    const problem = linkProblem(fields, head);
    const isClosed = fields.type === "SESSION_CLOSED";
    this.heads.set(fields.session, { seq: fields.seq, hash: fields.hash, ts: fields.ts, isClosed });
    if ("clock" in fields) this.clockSteps += 1;
    if (problem) {
      const place = `audit entry ${fields.seq} of session ${fields.session.slice(0, 80)}`;
      const told = `an audit entry is not what follows: ${problem}`;
      throw new Fault("entry", told, { place, index, session: fields.session, seq: fields.seq });
    }
    this.entries += 1;
  }
}

function linkProblem(fields, head) {
  if (fields.seq !== head.seq + 1) return `entry ${head.seq + 1} should stand here, not entry ${fields.seq}`;
  if (fields.prev_hash !== head.hash) return "it does not follow the entry before";
  if (fields.ts < head.ts) return `it was made before the entry before, which is of ${head.ts}`;
  if ("clock" in fields && fields.ts !== head.ts) {
    return "'clock' says that the time was taken from the entry before, and it was not";
  }
  if ((head.seq === 0 || head.isClosed) && fields.type !== "SESSION_STARTED") {
    return "a session begins with SESSION_STARTED, also when it was closed before";
  }
  return "";
}
