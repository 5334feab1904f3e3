"""The name of a log, and the key that is here for it: asked before anything that signs is imported."""

from __future__ import annotations

from holdfast.application.kit import Kit
from holdfast.ports import Signer, Store

LOG = "audit/log/"
ORIGIN_FILE = LOG + "origin"


def known_origin(store: Store) -> str:
    """Give the log's name; empty if it has none yet."""
    return (store.file(ORIGIN_FILE) or b"").decode("utf-8", "replace").rstrip("\n")


def signer_here(kit: Kit) -> Signer | None:
    """Give what signs heads of the log; None where there is no key, or nothing can be written."""
    if kit.signing is None or kit.store.read_only:
        return None
    origin = known_origin(kit.store)
    return kit.signing.signer(origin) if origin else None
