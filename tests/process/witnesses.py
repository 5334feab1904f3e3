"""Witnesses that are killed: `python -m tests.process.witnesses STATE STEP [forgetful]` runs one over HTTP.

It prints its address. STEP is the operation before which it kills itself, counted from the first request that
it grants: 1 to 3 are those that write the head down, 4 is the signature, 5 the answer, and 0 is never.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.adapters.crypto.signing import verify
from holdfast.adapters.system import SystemClock
from holdfast.adapters.witness import WitnessFolder, WitnessServer
from holdfast.application.audit.witnessing import Witness
from holdfast.domain.merkle import consistency_proof
from holdfast.domain.note import VerifierKey
from holdfast.domain.tiles import TileHashes
from holdfast.domain.treehead import TreeHead
from holdfast.domain.witness import AddCheckpoint
from tests.trails import LOG_KEY, WITNESS_KEY, Log

ROOT = Path(__file__).parents[2]
STEPS = 5


def request(log: Log, old: int, number: int) -> bytes:
    """Ask for a signature on one of a log's heads, with the proof from an older size."""
    size = log.pin(number).size
    hashes = TileHashes(size, lambda tile: log.tiles.get(tile.path))
    proof = consistency_proof(old, size, hashes) if old else ()
    return AddCheckpoint(old, proof, log.heads[number]).encode()


class ForgetfulFolder(WitnessFolder):
    """Remembers as long as the process lives: what a witness must not be."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.heads: dict[str, TreeHead] = {}

    def last(self, origin: str) -> TreeHead | None:
        return self.heads.get(origin)

    def keep(self, head: TreeHead) -> None:
        self.heads[head.origin] = head
        super().keep(head)


class Death:
    """Comes before a given operation."""

    def __init__(self, step: int) -> None:
        self.left = step

    def before(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return operation(*args)

        return call


class MortalSigner:
    """Signs, unless death comes first."""

    def __init__(self, death: Death) -> None:
        self.sign: Callable[[bytes], bytes] = death.before(WITNESS_KEY.sign)

    @property
    def key(self) -> VerifierKey:
        return WITNESS_KEY.key


def serve(folder: str, step: int, *, forgets: bool) -> None:
    memory = ForgetfulFolder(folder) if forgets else WitnessFolder(folder)
    death = Death(step)
    for name in ("fsync", "replace"):
        setattr(os, name, death.before(getattr(os, name)))
    witness = Witness(MortalSigner(death), [LOG_KEY.key], memory, verify, SystemClock())

    def answer(body: bytes) -> tuple[int, bytes, str]:
        given = witness.answer(body)
        if given.status == 200:
            death.before(lambda: None)()
        return given.status, given.body, given.kind

    with WitnessServer("127.0.0.1:0", answer) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        server.serve_forever()


@contextmanager
def running(folder: Path, step: int = 0, *, forgets: bool = False) -> Iterator[tuple[str, int]]:
    """Run a witness in a process of its own; answer its address and its process."""
    words = [sys.executable, "-m", "tests.process.witnesses", str(folder), str(step)]
    with subprocess.Popen(
        [*words, *(["forgetful"] if forgets else [])], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.kill()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), forgets=len(sys.argv) > 3)
