"""A witness that dies at any moment has never signed two histories of one log."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.adapters.crypto.signing import verify
from holdfast.adapters.witness import post_to_witness
from holdfast.domain.errors import CheckpointReadError
from holdfast.domain.note import Note, parse_note, verify_signatures
from tests.process.witnesses import STEPS, request, running
from tests.sizes import daily
from tests.trails import WITNESS_KEY, Log, make_log

ONE = make_log(12, (4, 8, 12))
#: The same log up to its fifth entry, and from there on another.
OTHER = make_log(12, (4, 8, 12), closes={5})


def ask(url: str, log: Log, old: int, number: int) -> tuple[int, bytes]:
    """Ask a witness; a signature that comes back is a right one."""
    try:
        status, body, _ = post_to_witness(url, request(log, old, number))
    except CheckpointReadError:
        return 0, b""
    if status == 200:
        text = parse_note(log.heads[number]).text
        signed = parse_note(f"{text}\n".encode() + body)
        assert verify_signatures(Note(text, signed.signatures), [WITNESS_KEY.key], verify)
    return status, body


def histories_signed(folder: Path, step: int, *, forgets: bool = False) -> int:
    """Let a witness die before a step, then ask for both histories; count those that were signed."""
    signed = set()
    with running(folder) as (url, _):
        assert ask(url, ONE, 0, 0)[0] == 200
    with running(folder, step, forgets=forgets) as (url, _):
        if ask(url, ONE, 0 if forgets else 4, 1)[0] == 200:
            signed.add("one")
    for name, log in (("other", OTHER), ("one", ONE)):
        with running(folder, forgets=forgets) as (url, _):
            for old in (0, 4, 8):
                if ask(url, log, old, 1)[0] == 200:
                    signed.add(name)
    return len(signed)


@pytest.mark.parametrize("step", daily(range(STEPS + 1), range(0, STEPS + 1, 2)))
def test_death_before_any_step_leads_to_one_history_only(tmp_path: Path, step: int):
    assert histories_signed(tmp_path, step) == 1


def test_a_witness_that_forgets_when_it_dies_would_be_found_out(tmp_path: Path):
    assert histories_signed(tmp_path, 0, forgets=True) == 2


def test_both_histories_at_once_and_a_kill_in_between(tmp_path: Path, campaign: bool):
    with running(tmp_path) as (url, _):
        ask(url, ONE, 0, 0)
    signed: set[bool] = set()
    for number in range(6) if campaign else (1, 5):
        with running(tmp_path) as (url, process), ThreadPoolExecutor(8) as pool:
            logs = [ONE, OTHER] * 4
            asked = [pool.submit(ask, url, log, 4, 1) for log in logs]
            if number < 5:
                asked[number].result()
                os.kill(process, signal.SIGKILL)
            answers = [one.result() for one in asked]
        signed |= {log is ONE for log, (status, _) in zip(logs, answers, strict=True) if status == 200}
        # Also by whoever believes what the witness says it saw.
        with running(tmp_path) as (url, _):
            signed |= {log is ONE for log in (ONE, OTHER) if ask(url, log, 8, 1)[0] == 200}
    assert len(signed) == 1
