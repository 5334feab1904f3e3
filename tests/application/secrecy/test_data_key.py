"""A data key seals the same to the same, and opens nothing that was sealed for another place."""

from __future__ import annotations

from tests.encrypted import encrypted_store, keyring


def test_equal_content_in_an_equal_place_gives_equal_bytes_and_nothing_else_does() -> None:
    ring = keyring(encrypted_store())
    ann, bob = ring.key_for("subject:ann"), ring.key_for("subject:bob")
    sealed = ann.seal(b"words", b"place")
    assert sealed == ann.seal(b"words", b"place")
    others = {
        ann.seal(b"words", b"elsewhere"),
        ann.seal(b"word", b"place"),
        ann.seal(b"splace", b"word"),
        bob.seal(b"words", b"place"),
    }
    assert len(others) == 4 and sealed not in others


def test_what_was_sealed_opens_with_its_key_and_its_place_only() -> None:
    ring = keyring(encrypted_store())
    ann, bob = ring.key_for("subject:ann"), ring.key_for("subject:bob")
    sealed = ann.seal(b"words", b"place")
    assert ann.open(sealed, b"place") == b"words"
    assert ann.open(sealed, b"elsewhere") is None
    assert bob.open(sealed, b"place") is None
    assert ann.open(sealed[:-1], b"place") is None


def test_a_key_is_never_shown() -> None:
    key = keyring(encrypted_store()).key_for("subject:ann")
    assert "nonces" not in repr(key) and "secret" not in repr(key)
