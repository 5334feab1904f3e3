"""The cipher against published vectors: of AES-256-GCM itself, and of the extended nonce on top of it."""

import hashlib
import threading

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.crypto.cipher import NONCE_BYTES, Xaes256Gcm, XaesKey
from holdfast.domain.errors import ConfigError
from tests.trails import vectors

VECTORS = vectors("cipher.json")
KEY = bytes(range(32))


def unhex(vector):
    return {name: bytes.fromhex(text) for name, text in vector.items() if name != "source"}


@pytest.mark.parametrize("vector", VECTORS["aes_256_gcm"], ids=lambda vector: vector["source"])
def test_the_block_cipher_mode_below_gives_the_published_bytes(vector):
    given_ = unhex(vector)
    sealed = given_["ct"] + given_["tag"]
    gcm = AESGCM(given_["key"])
    assert gcm.encrypt(given_["iv"], given_["msg"], given_["aad"]) == sealed
    assert gcm.decrypt(given_["iv"], sealed, given_["aad"]) == given_["msg"]


@pytest.mark.parametrize("vector", VECTORS["xaes_256_gcm"], ids=["without carry", "with carry"])
def test_the_published_messages_are_sealed_to_the_published_bytes(vector):
    given_ = unhex(vector)
    key, nonce = XaesKey(given_["key"]), given_["nonce"]
    assert key.seal(given_["msg"], given_["aad"], nonce) == nonce + given_["ct"]
    assert key.open(nonce + given_["ct"], given_["aad"]) == given_["msg"]
    derived = AESGCM(given_["derived"]).encrypt(nonce[12:], given_["msg"], given_["aad"])
    assert derived == given_["ct"]


def test_ten_thousand_messages_of_the_published_stream_hash_to_the_published_sum():
    stream = memoryview(hashlib.shake_128(b"").digest(4_000_000))
    at = 0

    def take(count):
        nonlocal at
        at += count
        return bytes(stream[at - count : at])

    total = hashlib.shake_128()
    for _ in range(10_000):
        key, nonce = XaesKey(take(32)), take(24)
        message = take(take(1)[0])
        associated = take(take(1)[0])
        total.update(key.seal(message, associated, nonce)[NONCE_BYTES:])
    assert total.hexdigest(32) == VECTORS["xaes_accumulated_10000"]


def test_every_flipped_bit_and_every_cut_is_refused():
    key = XaesKey(KEY)
    sealed = key.seal(b"a short message", b"place")
    for bit in range(len(sealed) * 8):
        changed = bytearray(sealed)
        changed[bit // 8] ^= 1 << bit % 8
        assert key.open(bytes(changed), b"place") is None
    for end in range(len(sealed)):
        assert key.open(sealed[:end], b"place") is None
    assert key.open(sealed + b"\0", b"place") is None
    assert key.open(sealed, b"place") == b"a short message"


@given(st.binary(max_size=300), st.binary(max_size=100), st.binary(max_size=100))
def test_what_was_sealed_opens_with_the_same_key_and_place_only(message, place, other):
    key = Xaes256Gcm().key(KEY)
    sealed = key.seal(message, place)
    assert len(sealed) == len(message) + Xaes256Gcm.overhead_bytes
    assert key.open(sealed, place) == message
    assert place == other or key.open(sealed, other) is None
    assert XaesKey(bytes(32)).open(sealed, place) is None


def test_two_seals_of_one_message_share_no_nonce():
    key = XaesKey(KEY)
    nonces = {key.seal(b"same", b"")[:NONCE_BYTES] for _ in range(200)}
    assert len(nonces) == 200


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_keys_and_nonces_of_another_length_are_refused(length):
    with pytest.raises(ConfigError, match="32 bytes"):
        XaesKey(bytes(length))
    with pytest.raises(ConfigError, match="24 bytes"):
        XaesKey(KEY).seal(b"", b"", bytes(length))


def test_one_key_is_used_by_many_threads_at_once():
    key, wrong = XaesKey(KEY), []

    def work(number):
        for count in range(300):
            message = b"%d-%d" % (number, count)
            if key.open(key.seal(message, b"p"), b"p") != message:
                wrong.append(message)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
