"""Whether what is assigned is a secret."""

from __future__ import annotations

import pytest

from holdfast.adapters.redaction import engine
from holdfast.domain.assignments import is_stand_in
from holdfast.domain.redaction import Redactor

REDACTOR = Redactor(b"k" * 16, engine())

#: Texts in which what stands between the bars is hidden.
SECRETS = [
    "password=|hunter2|",
    "password=|letmein|",
    "PASSWORD = '|swordfish|'",
    'password="|two words|"',
    "passphrase: '|correct horse battery staple|'",
    "?user=ann&password=|a1b2|&x=1",
    "mysql://x password=|1234|",
    "password: |Tr0ub4dor|",
    "(password=|hunter2|).",
    "password = |hunter2|, then",
    "Password:|hunter2|",
    'secret => "|s3cr3t!|"',
    "db.password := '|abc123|'",
    'if password == "|hunter2|":',
    "secret1=|abcd1234|",
    'args["password"] = "|abc123|"',
    '{\\"password\\": \\"|hunter2|\\"}',
    '{\\\\\\"password\\\\\\": \\\\\\"|hunter2|\\\\\\"}',
    '{"password": "|with \\"quotes\\" 1|"}',
    "token=|abcdefgh12345678|",
    'token: "|abcd1234|"',
    "api_key: |abcdef123456|",
    "APIKEY=|0123456789abcdef|",
    "<clientSecret>|abc123def|</clientSecret>",
    "--password |hunter2|",
    "--db-password=|hunter2|",
    "access_key%3D|abcd1234efgh|",
    "password=b'|bytes123|'",
    "Pwd=|abc123|;",
    "//registry.example.org/:_authToken=|abcdefgh12345678|",
    "{password:'|abc123|'}",
    "Passwort: |hunter2x|",
    "DB_KENNWORT=|swordfish|",
    "machine h login u password |swordfish|",
    "mysql -u root -p|swordfish| db",
    "mysqldump \\\n  -p|swordfish| \\\n  db",
    "mysql -p|hunter2| db; ssh -p2222 host",
]

NO_SECRETS = [
    "password=password",
    "password=pw",
    "password=None",
    "password=self.password",
    "password=get_password()",
    "password=os.environ['X']",
    "password: str",
    "password: string;",
    "password = input()",
    "password=$PASSWORD",
    "password=${PASSWORD}",
    "password={password}",
    "password=<password>",
    "password=***",
    "password=...",
    "password='your-password'",
    'password="string"',
    "password='DB_PASSWORD'",
    'password=""',
    "password=''",
    "password = '  '",
    "password: must be long",
    "password: sha256",
    "password: 2026-01-11",
    "password: 12",
    "PWD=/home/ann",
    "pwd=~/x",
    "OLDPWD=/tmp/a1",
    "token=abc",
    "token='abc'",
    "token: 4096",
    "token=1234567890123456",
    "token = 'Hello world'",
    "token='authorization-token-endpoint'",
    "next_page_token=abcdefgh12345678",
    "eos_token='<|endoftext|>'",
    "secret: kv/data/prod1",
    "secret=config.secret1.value",
    "key=abcdef123456",
    "sort_key: abc123",
    "prompt='Password: ', x=1",
    "'password: ' + value1",
    "private_key: RSAPrivateKey2",
    "api_key=api_key",
    "--token TOKEN",
    "--password -v",
    "--api-key <KEY>",
    "tokens=abcdefgh12345678",
    "secretary=abc123",
    "machine h login u password $PASSWORD",
    "mysql -u root -p db",
    "mysql -p$PASSWORD db",
    "mysql -p<password>",
    "mysql db; mkdir -p/tmp/x",
    "docker run --name mysql -p3306:3306",
    "Das Passwort: bitte nicht weitergeben.",
    "password_hint=abc123",
    'password="please enter your password here"',
]


@pytest.mark.parametrize("name", ["re2", "re"])
@pytest.mark.parametrize("marked", SECRETS)
def test_a_value_is_hidden_and_nothing_around_it(marked: str, name: str) -> None:
    before, secret, after = marked.split("|")
    hidden = Redactor(b"k" * 16, engine(name)).text(before + secret + after)
    assert secret not in hidden
    assert hidden.startswith(f"{before}[REDACTED:")
    assert hidden.endswith(f"]{after}")


@pytest.mark.parametrize("text", NO_SECRETS)
def test_variables_types_labels_and_prose_are_not(text: str) -> None:
    assert REDACTOR.text(text) == text


@pytest.mark.parametrize(
    "text", ["$X", "${X}", "{x}", "<x>", "%s", "***", "a...", "PASSWORD", "your_key", "xxxx"]
)
def test_stand_ins_are_known(text: str) -> None:
    assert is_stand_in(text)
    assert not is_stand_in("hunter2")
