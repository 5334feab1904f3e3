"""Witnesses put together: from a key and the logs it signs for to somebody who listens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.adapters.system import SystemClock
from holdfast.adapters.witness import WitnessFolder, WitnessServer, post_to_witness
from holdfast.application.audit.witnessing import Answer, Witness
from holdfast.bootstrap import signature_check
from holdfast.domain.note import COSIGNATURE, VerifierKey


def open_witness(
    key_file: str, logs: Sequence[VerifierKey], folder: str, *, name: str | None = None
) -> Witness:
    """Put a witness together.

    Args:
        key_file: where its private key is.
        logs: public keys of the logs it signs for.
        folder: where it remembers what it signed.
        name: makes a new key of this name if there is no such file.
    """
    verify = signature_check()
    from holdfast.adapters.crypto.signing import SigningKey

    path = Path(key_file)
    if name is not None and not path.exists():
        SigningKey.generate(name, COSIGNATURE).save(path)
    return Witness(SigningKey.load(path), logs, WitnessFolder(folder), verify, SystemClock())


def witness_server(witness: Witness, address: str, *, public: bool = False) -> WitnessServer:
    """Let a witness listen at an address."""

    def answer(body: bytes) -> tuple[int, bytes, str]:
        given = witness.answer(body)
        return given.status, given.body, given.kind

    return WitnessServer(address, answer, public=public)


def witness_at(url: str) -> Callable[[bytes], Answer]:
    """Answer the way to the witness at a URL."""
    return lambda body: Answer(*post_to_witness(url, body))
