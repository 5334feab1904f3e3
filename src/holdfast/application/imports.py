"""Trails that came along with copies: each lies below `imports/` as the export that it arrived as."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.domain.tiles import unpack_bundle
from holdfast.ports import Store

IMPORTS = "imports/"
#: What an export calls the file of entries that no head covers yet.
TAIL_FILE = "tail.jsonl"
_ENTRIES = "tile/entries/"


def imports(store: Store) -> list[str]:
    """Name the folders of all that came along."""
    return sorted({"/".join(name.split("/")[:2]) for name in store.files(IMPORTS)})


def lines_of_import(store: Store, folder: str) -> Iterator[bytes]:
    """Give every entry of an import: those in bundles, and those that came after its newest head."""
    for name in store.files(f"{folder}/{_ENTRIES}"):
        yield from unpack_bundle(store.file(name) or b"")
    yield from (store.file(f"{folder}/{TAIL_FILE}") or b"").splitlines(keepends=True)


def imported_lines(store: Store) -> Iterator[bytes]:
    """Give every entry of all of them."""
    for folder in imports(store):
        yield from lines_of_import(store, folder)
