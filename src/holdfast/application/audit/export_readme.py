"""The page in every export that tells a stranger what it is and how to verify it without Holdfast."""

from __future__ import annotations

_LOG = """\
AUDIT LOG: AN EXPORT
====================

This folder holds a whole audit log of {entries} entries. It can be verified on any machine, offline, without
the software that wrote it. Nothing in it has to be believed: the only thing you need from elsewhere is the
public key of the log, which you should get from its keeper by another way than this folder.

WHAT IS HERE
  checkpoint             the newest signed head: name of the log, number of entries, root of the tree
  heads/                 every head that was ever signed
  vkeys                  public keys as this log names them; compare with what you were given
  tile/entries/          the entries, 256 in a file, each after its length (two bytes, the high one first)
  tile/0/, tile/1/ ...   hashes of the tree
  payloads/              what the entries commit to by its SHA-256; may have been erased since
  tail.jsonl             entries that no head covers yet, if there are any
  sessions/              the same entries, session by session, one on a line, for people and for jq
  merkle_roots.json      the signed heads as a list: size, root, time; one for each session lies with it
                         (the times, and how many entries of a session, are for people: nothing proves them)
  SHA256SUMS             sums of all these files

"""

_SESSION = """\
AUDIT LOG: ONE SESSION
======================

This folder holds one session of an audit log, {entries} entries, with a proof for each that it is in the
log. It can be verified on any machine, offline, without the software that wrote it. The only thing you need
from elsewhere is the public key of the log, which you should get from its keeper by another way than this
folder.

WHAT IS HERE
  checkpoint                        the signed head: name of the log, number of entries, root of the tree
  vkeys                             public keys as this log names them; compare with what you were given
  sessions/*/audit_trail.jsonl      the entries, one on a line
  sessions/*/payloads.jsonl         what the entries commit to by its SHA-256; may have been erased since
  sessions/*/proofs/*.tlog-proof    for the entry of that number: that it is in the log (C2SP tlog-proof)
  merkle_roots.json                 the signed heads as a list: size, root, time; and those of the session
                                    (nothing here proves these lists)
  SHA256SUMS                        sums of all these files

"""

_PERIOD = """\
AUDIT LOG: A PERIOD
===================

This folder holds {entries} entries of an audit log, those from {since} to {until},
with a proof for each that it is in the log, and at which place. It can be verified on any machine, offline,
without the software that wrote it. The only thing you need from elsewhere is the public key of the log, which
you should get from its keeper by another way than this folder.

WHAT IT SHOWS, AND WHAT IT DOES NOT
  The entries are in the signed log, unchanged, and none between the first and the last of them was left out:
  their places follow each other without a gap. The times are those that the log was told.
  It does not show what was recorded before the first and after the last of them, nor that these are the first
  and the last of the period: for that, ask for the whole log. Sessions may have begun before and gone on
  after. An entry whose clock was behind may stand among others that are later.

WHAT IS HERE
  checkpoint                  the signed head: name of the log, number of entries, root of the tree
  vkeys                       public keys as this log names them; compare with what you were given
  period/audit_trail.jsonl    the entries, one on a line, in the order of the log
  period/payloads.jsonl       what the entries commit to by its SHA-256; may have been erased, or left out
  period/proofs/*.tlog-proof  for the line of that number: that it is in the log (C2SP tlog-proof)
  merkle_roots.json           the signed heads as a list: size, root, time (nothing here proves that list)
  SHA256SUMS                  sums of all these files

"""

_HOW = """\
HOW TO VERIFY
  1. Nothing was damaged on the way:         sha256sum -c SHA256SUMS
  2. An entry is what it says: take its line, newline included, and make the value of "hash" empty; the
     SHA-256 of that is the value of "hash". "prev_hash" is the hash of the entry before it in its session,
     and "GENESIS" for the first; "seq" counts 1, 2, 3 ... without a gap. (Of a period what was before its
     first entries is not here.)
  3. The tree: RFC 6962 with SHA-256. A leaf is SHA-256(0x00, line with its newline).
  4. The head: a C2SP signed-note with Ed25519 (https://c2sp.org/tlog-checkpoint).
  5. A payload: the SHA-256 of the bytes in "text" (UTF-8), or in "base64", is data.payload of its entry.

  Tools that read these formats exist in several languages: golang.org/x/mod/sumdb (note and tlog),
  everything that reads https://c2sp.org/tlog-tiles, and the program independent_verifier.py from Holdfast's
  tests, which is one file of plain Python with no dependencies.

  With that file: python independent_verifier.py THIS-FOLDER KEY
  With Holdfast:  holdfast audit verify THIS-FOLDER --key KEY
  KEY is the public key of the log, one line: name+id+key.
"""

_HEAD = """\
THE HEAD, AS IT STANDS IN checkpoint
{head}
"""
_NO_HEAD = """\
There is no signed head: this log was never signed. Chains and tree can be verified, but nothing shows that
the log was not made anew, or that its end was not cut off.
"""


def readme(
    checkpoint: bytes, session_id: str | None, entries: int, period: tuple[str, str] | None = None
) -> bytes:
    """Write the page.

    Args:
        period: from when and to when, of an export that is not the whole log.
    """
    page = (_LOG if session_id is None else _SESSION).format(entries=entries)
    if period is not None:
        since, until = (
            text or ending for text, ending in zip(period, ("the beginning", "the end"), strict=True)
        )
        page = _PERIOD.format(entries=entries, since=since, until=until)
    shown = "\n".join(f"  {line}".rstrip() for line in checkpoint.decode("utf-8", "replace").splitlines())
    return (page + _HOW + "\n" + (_HEAD.format(head=shown) if checkpoint else _NO_HEAD)).encode()
