"""What encryption adds to a commit: two stores side by side, one of them encrypted."""

from __future__ import annotations

import secrets
import time
from pathlib import Path

from benchmarks.measure import Row, interleaved, micros, p50
from benchmarks.states import ChangingState
from holdfast import CheckpointService
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.bootstrap import build_kit
from holdfast.config import Config

ROUNDS = 1200


def run(folder: Path) -> list[Row]:
    folder.mkdir()
    key = f"command:echo {secrets.token_hex(32)}"
    plain = _Subject(folder / "plain", Config(retain=False, redact=False))
    settings = Config(retain=False, redact=False, encrypt=True, encryption_key=key)
    sealed = _Subject(folder / "sealed", settings)
    times = interleaved(ROUNDS, plain.step, sealed.step, block=20)
    for subject in (plain, sealed):
        subject.service.close()
    ratio = p50(times[1]) / p50(times[0])
    more_cpu = p50(sealed.cpu) - p50(plain.cpu)
    cpu = f"{micros(more_cpu)} of CPU more than {micros(p50(plain.cpu))}"
    value = f"{ratio:.2f}x of {micros(p50(times[0]))}; {cpu}"
    return [Row("encryption", "encrypted commit, 20 KB", value, "<= 1.3x unencrypted", ratio <= 1.3)]


class _Subject:
    """A service that makes checkpoints of 20 KB, and what each costs in processor time."""

    def __init__(self, folder: Path, config: Config) -> None:
        self.service = CheckpointService(build_kit(FilesystemStore.open(str(folder)), config))
        self.changing = ChangingState("bench", 20_000)
        self.cpu: list[float] = []
        self.step()

    def step(self) -> None:
        state = self.changing.step()
        before = time.thread_time()
        self.service.create_checkpoint("bench", state)
        self.cpu.append(time.thread_time() - before)
