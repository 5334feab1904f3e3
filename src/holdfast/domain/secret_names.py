"""Names under which people keep secrets: keys of objects, variables, options, headers."""

from __future__ import annotations

import re

#: What a name ends with, once it is written in small letters and without `-`, `_`, `.` and spaces.
_ENDINGS: dict[str, tuple[str, ...]] = {
    "password": ("password", "passwords", "passwd", "passphrase", "passcode", "passwort", "kennwort",
                 "seedphrase", "mnemonic"),
    "secret": ("secret", "secrets", "recoverycode", "recoverycodes", "backupcode", "backupcodes"),
    "token": ("token", "accesstokens", "apitokens", "authtokens", "refreshtokens", "sessiontokens"),
    "key": tuple(
        f"{owner}key{plural}"
        for owner in (
            "api", "access", "secret", "private", "signing", "encryption", "decryption", "master", "account",
            "shared", "subscription", "service", "admin", "auth", "ssh", "hmac", "deploy", "webhook",
        )
        for plural in ("", "s")
    ),
    "authorization": ("authorization", "authheader", "authheaders"),
    "credential": ("credential", "credentials"),
    "cookie": ("setcookie", "sessioncookie", "sessioncookies"),
}  # fmt: skip
#: Too short to be looked for inside longer words.
_LAST_WORDS = {
    "pwd": "password",
    "pw": "password",
    "otp": "password",
    "jwt": "token",
    "bearer": "token",
    "creds": "credential",
    "cred": "credential",
    "cookie": "cookie",
    "cookies": "cookie",
}
#: Too common a word to be looked for at the end of names: only as the whole name.
_WHOLE_NAMES = {"pin": "password"}
#: Keys of an object that names a value and holds it.
NAMES = ("name", "key", "Name", "Key")
VALUES = ("value", "Value")
#: Keys above a user and a password, as a list of two; written as by `squash`.
LOGINS = frozenset({"auth", "basicauth", "httpauth", "proxyauth"})
#: Tokens that open no door: pages of results, marks of a vocabulary, counters.
_HARMLESS_TOKENS = tuple(
    f"{what}token"
    for what in (
        "page", "next", "continuation", "cursor", "sync", "skip", "resume", "change", "fencing", "lease",
        "cancellation", "idempotency", "eos", "bos", "pad", "unk", "mask", "sep", "cls", "stop", "start",
        "end", "special", "image", "first", "last", "per", "prompt", "decoded", "starting", "forward",
        "backward", "clientrequest", "creation", "lock",
    )
)  # fmt: skip
#: What may follow the word that counts: `password_hash`, `token_value`, `secret2`.
_TAILS = frozenset(
    ["hash", "value", "text", "plain", "plaintext", "raw", "encoded", "base64", "b64", "confirm"]
)

#: Kinds under whose names numbers are counts, not secrets.
COUNTED = frozenset({"token", "cookie"})

_WORDS = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\\W_A-Za-z]+")
_PLURALS = re.compile("[A-Z]{2,}s(?![a-z])")


def squash(name: str) -> str:
    """Write a name in small letters without what parts its words: `X-Api-Key`, `xApiKey` -> `xapikey`."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def secret_kind(name: str) -> str | None:
    """Tell which kind of secret a name announces; None for all other names."""
    words = [word.lower() for word in _WORDS.findall(_PLURALS.sub(lambda found: found[0].lower(), name))]
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _TAILS):
        words.pop()
    if not words:
        return None
    joined = "".join(words).rstrip("0123456789")
    if joined.endswith(_HARMLESS_TOKENS):
        return None
    if name.lower() in _WHOLE_NAMES:
        return _WHOLE_NAMES[name.lower()]
    if words[-1] in _LAST_WORDS:
        return _LAST_WORDS[words[-1]]
    return next((kind for kind, endings in _ENDINGS.items() if joined.endswith(endings)), None)
