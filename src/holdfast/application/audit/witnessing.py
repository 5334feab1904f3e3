"""The two sides of witnessing: a witness that answers a log, and a log that asks one to sign its head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointReadError,
    ChecksumMismatchError,
    InvalidStateError,
)
from holdfast.domain.note import (
    COSIGNATURE,
    Signature,
    VerifierKey,
    Verify,
    parse_note,
)
from holdfast.domain.treehead import parse_head, parse_number
from holdfast.domain.witness import Approval, Refusal, Status, judge
from holdfast.ports import Clock, Signer, WitnessMemory

TEXT = "text/plain; charset=utf-8"
#: The answer to a log that was wrong about what the witness saw last: that size, and nothing else.
SIZE = "text/x.tlog.size"

OK = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What a witness says, in the words of HTTP."""

    status: int
    body: bytes
    kind: str = TEXT


class Witness:
    """Signs a head of a log it knows, if that grew out of the last head it signed."""

    def __init__(
        self, signer: Signer, logs: Sequence[VerifierKey], memory: WitnessMemory, verify: Verify, clock: Clock
    ) -> None:
        if signer.key.kind != COSIGNATURE:
            raise InvalidStateError(
                "the key is not one for cosignatures",
                place=signer.key.name,
                hint="A witness has a key of its own; `holdfast audit witness --name NAME` makes one.",
            )
        self.key = signer.key
        self._signer = signer
        self._logs = tuple(logs)
        self._memory = memory
        self._verify = verify
        self._clock = clock

    def decide(self, request: bytes) -> Signature | Refusal:
        """Decide on a request; whatever is signed was written down before.

        Raises:
            CheckpointError: if the memory cannot be read or written; nothing was signed then.
        """
        with self._memory.alone():
            judged = judge(request, self._logs, self._memory.last, self._verify)
            if isinstance(judged, Refusal):
                return judged
            return self._sign(judged)

    def answer(self, request: bytes) -> Answer:
        """Decide on a request; answer as the protocol has it."""
        decided = self.decide(request)
        if isinstance(decided, Signature):
            return Answer(OK, f"{decided}\n".encode())
        if decided.status == Status.CONFLICT:
            return Answer(decided.status, f"{decided.seen_size}\n".encode(), SIZE)
        return Answer(decided.status, f"{decided.reason}\n".encode())

    def _sign(self, approval: Approval) -> Signature:
        # First remember, then speak: a signature that nobody remembers could be given to two histories.
        self._memory.keep(approval.head)
        return approval.cosign(self.key, self._signer.sign, int(self._clock.now().timestamp()))


def ask_witness(
    checkpoint: bytes,
    build_request: Callable[[int], bytes],
    post: Callable[[bytes], Answer],
    old_size: int = 0,
) -> tuple[Signature, ...]:
    """Ask a witness to sign a head; answer its signatures, which nobody has verified yet.

    Args:
        checkpoint: the signed head.
        build_request: makes the request with the proof from an older size to that head.
        post: brings a request to the witness.
        old_size: the size that the witness is believed to have seen last.

    Raises:
        ChecksumMismatchError: if the witness has signed another history.
        CheckpointReadError: if it gave no answer that can be used.
    """
    size = parse_head(parse_note(checkpoint).text).size
    answer = post(build_request(min(old_size, size)))
    if answer.status == Status.CONFLICT:
        answer = _ask_again(answer, size, min(old_size, size), build_request, post)
    if answer.status in (Status.CONFLICT, Status.INCONSISTENT):
        raise _other_history(f"its last head does not lead to the one of size {size}")
    if answer.status != OK:
        raise CheckpointReadError(
            f"the witness did not sign ({answer.status}: {_words(answer)})",
            hint="It must know this log's public key: see `holdfast audit witness --log`.",
        )
    return read_cosignatures(answer.body, checkpoint)


def _ask_again(
    answer: Answer,
    size: int,
    old_size: int,
    build_request: Callable[[int], bytes],
    post: Callable[[bytes], Answer],
) -> Answer:
    """Begin where the witness says that it is."""
    seen = _seen_size(answer)
    if seen > size:
        raise _other_history(f"it has seen {seen} entries, and here are {size}")
    return answer if seen == old_size else post(build_request(seen))


def _seen_size(answer: Answer) -> int:
    try:
        return parse_number(answer.body.decode("ascii").removesuffix("\n"), "the size a witness tells")
    except (UnicodeDecodeError, CheckpointCorruptError):
        raise CheckpointReadError("the witness refused without telling what it saw last") from None


def read_cosignatures(lines: bytes, checkpoint: bytes) -> tuple[Signature, ...]:
    """Read the signature lines of an answer, or of a whole note with the same text as a head.

    Raises:
        CheckpointReadError: if there is none.
    """
    text = parse_note(checkpoint).text
    try:
        note = parse_note(lines if b"\n\n" in lines else text.encode() + b"\n" + lines)
    except CheckpointCorruptError as fault:
        raise CheckpointReadError(f"this is no cosignature ({fault})") from None
    if note.text != text:
        raise CheckpointReadError(
            "the cosignature is over another head", hint="Ask for one over the newest, with --request."
        )
    return tuple(signature for signature in note.signatures if signature.name != parse_head(text).origin)


def _other_history(why: str) -> ChecksumMismatchError:
    return ChecksumMismatchError(
        f"the witness has signed another history of this log: {why}",
        hint="The store was put back, cut or rewritten since; compare it with a backup or an export.",
    )


def _words(answer: Answer) -> str:
    return ascii(answer.body[:200].decode("utf-8", "replace").strip())[1:-1]
