"""Synthetic secrets of every kind, to be planted where none may come out.

They are put together when the tests run, so that no scanner of secrets stumbles over this repository. None
was ever valid.
"""

from __future__ import annotations

import base64
import random
import string
from typing import NamedTuple

_UPPER = string.ascii_uppercase + string.digits
_ALNUM = string.ascii_letters + string.digits
_DASHED = _ALNUM + "_-"
_HEX = "0123456789abcdef"
_BASE64 = _ALNUM + "+/"

_chance = random.Random(20260111)


class Canary(NamedTuple):
    """A secret, and the text it comes in."""

    kind: str
    text: str
    secret: str


def some(letters: str, count: int) -> str:
    """Draw letters, digits among them."""
    drawn = _chance.choices(letters, k=count - 1)
    drawn.insert(count // 2, "7")
    return "".join(drawn)


def _alone(kind: str, *parts: str) -> Canary:
    secret = "".join(parts)
    return Canary(kind, secret, secret)


def _within(kind: str, before: str, secret: str, after: str = "") -> Canary:
    return Canary(kind, before + secret + after, secret)


def _pair(user: str, count: int) -> str:
    """Encode a user and a password as the Basic scheme does."""
    return base64.b64encode(f"{user}:{some(_ALNUM, count)}".encode()).decode()


def _pem(label: str) -> Canary:
    lines = [some(_BASE64, 64) for _ in range(4)] + [some(_ALNUM, 20) + "=="]
    frame = "-----{} " + label + "-----"
    return _alone("private-key", "\n".join([frame.format("BEGIN"), *lines, frame.format("END")]))


TOKENS: tuple[Canary, ...] = (
    _alone("aws-access-key-id", "AK", "IA", some(_UPPER, 16)),
    _alone("aws-access-key-id", "AS", "IA", some(_UPPER, 16)),
    _alone("aws-session-token", "Fwo", "GZXIvYXdz", some(_BASE64, 120)),
    _alone("aws-session-token", "IQo", "Jb3JpZ2lu", some(_BASE64, 120), "=="),
    _alone("gcp-api-key", "AI", "za", some(_DASHED, 35)),
    _alone("google-oauth-token", "ya", "29.", some(_DASHED, 60)),
    _alone("google-oauth-secret", "GOC", "SPX-", some(_DASHED, 28)),
    _alone("google-refresh-token", "1/", "/0", some(_DASHED, 60)),
    _within("azure-account-key", "AccountName=x;Account" + "Key=", some(_BASE64, 86) + "=="),
    _within("azure-account-key", "SharedAccessKeyName=root;SharedAccess" + "Key=", some(_BASE64, 43) + "="),
    _within(
        "azure-sas-signature", "https://x.example/c/b?sv=2024-11-04&s" + "ig=", some(_ALNUM, 40) + "%2Fa%3D"
    ),
    _alone("azure-client-secret", some(_ALNUM, 3), "8", "Q~", some(_ALNUM + "~.-_", 34)),
    _alone("azure-api-key", some(_ALNUM, 52), "JQQ", "J99", some(_ALNUM, 26)),
    _alone("anthropic-api-key", "sk-", "ant-api03-", some(_DASHED, 93), "AA"),
    _alone("openai-api-key", "sk-", "proj-", some(_DASHED, 74), "T3Blbk", "FJ", some(_DASHED, 74)),
    _alone("openai-api-key", "sk-", some(_ALNUM, 48)),
    _alone("openrouter-api-key", "sk-", "or-v1-", some(_HEX, 64)),
    _alone("langfuse-secret-key", "sk-", "lf-", "-".join(some(_HEX, n) for n in (8, 4, 4, 4, 12))),
    _alone("github-token", "gh", "p_", some(_ALNUM, 36)),
    _alone("github-token", "gh", "s_", some(_ALNUM, 36)),
    _alone("github-fine-grained-token", "github", "_pat_", some(_ALNUM, 22), "_", some(_ALNUM, 59)),
    _alone("gitlab-token", "gl", "pat-", some(_DASHED, 20)),
    _alone("gitlab-token", "gl", "pat-", some(_DASHED, 27), ".01.", some(_ALNUM, 9)),
    _alone("gitlab-runner-token", "GR13", "48941", some(_DASHED, 20)),
    _alone("slack-token", "xo", "xb-", some(string.digits, 12), "-", some(_ALNUM, 24)),
    _alone("slack-app-token", "xa", "pp-1-", some(_UPPER, 11), "-", some(_HEX, 64)),
    _within(
        "slack-webhook",
        "https://hooks.slack" + ".com/services/",
        f"T{some(_UPPER, 8)}/B{some(_UPPER, 8)}/{some(_ALNUM, 24)}",
    ),
    _alone("stripe-key", "sk_", "live_", some(_ALNUM, 24)),
    _alone("stripe-key", "rk_", "test_", some(_ALNUM, 24)),
    _alone("stripe-webhook-secret", "wh", "sec_", some(_ALNUM, 32)),
    _alone("twilio-api-key", "S", "K", some(_HEX, 32)),
    _alone("sendgrid-api-key", "S", "G.", some(_DASHED, 22), ".", some(_DASHED, 43)),
    _alone("mailgun-api-key", "ke", "y-", some(_HEX, 32)),
    _alone("npm-token", "np", "m_", some(_ALNUM, 36)),
    _alone("pypi-token", "py", "pi-AgEIcHlwaS5vcmc", some(_DASHED, 120)),
    _alone("rubygems-token", "ruby", "gems_", some(_HEX, 48)),
    _alone("docker-token", "dc", "kr_pat_", some(_DASHED, 27)),
    _alone("huggingface-token", "h", "f_", some(_ALNUM, 34)),
    _alone("groq-api-key", "gs", "k_", some(_ALNUM, 52)),
    _alone("xai-api-key", "xa", "i-", some(_ALNUM, 80)),
    _alone("perplexity-api-key", "pp", "lx-", some(_ALNUM, 48)),
    _alone("replicate-token", "r", "8_", some(_ALNUM, 37)),
    _alone("pinecone-api-key", "pc", "sk_", some(_ALNUM, 6), "_", some(_ALNUM, 58)),
    _alone("tavily-api-key", "tv", "ly-dev-", some(_ALNUM, 32)),
    _alone("langsmith-api-key", "ls", "v2_pt_", some(_HEX, 32), "_", some(_HEX, 10)),
    _alone("wandb-api-key", "wan", "db_v1_", some(_ALNUM, 60)),
    _alone("elevenlabs-api-key", "s", "k_", some(_HEX, 48)),
    _alone("json-web-token", "ey", "JhbGciOiJIUzI1NiJ9.ey", some(_DASHED, 60), ".", some(_DASHED, 43)),
    _alone("telegram-bot-token", some(string.digits, 10), ":A", "A", some(_DASHED, 33)),
    _within(
        "discord-webhook", "https://discord" + ".com/api/webhooks/123456789012345678/", some(_DASHED, 68)
    ),
    _alone("databricks-token", "da", "pi", some(_HEX, 32)),
    _alone("vault-token", "hv", "s.", some(_DASHED, 95)),
    _alone("age-secret-key", "AGE-SEC", "RET-KEY-1", some(_UPPER, 58)),
    _alone("digitalocean-token", "do", "p_v1_", some(_HEX, 64)),
    _alone("doppler-token", "dp", ".pt.", some(_ALNUM, 43)),
    _alone("shopify-token", "shp", "at_", some(_HEX, 32)),
    _alone("square-token", "sq", "0atp-", some(_DASHED, 22)),
    _alone("atlassian-token", "ATA", "TT3xFfGF0", some(_DASHED, 150), "=", "1A2B3C4D"),
    _alone("linear-api-key", "lin", "_api_", some(_ALNUM, 40)),
    _alone("notion-token", "nt", "n_", some(_ALNUM, 46)),
    _alone("postman-api-key", "PM", "AK-", some(_HEX, 24), "-", some(_HEX, 34)),
    _alone("figma-token", "fi", "gd_", some(_DASHED, 40)),
    _alone("grafana-token", "gl", "sa_", some(_ALNUM, 32), "_", some(_HEX, 8)),
    _alone("grafana-token", "gl", "c_ey", "J", some(_ALNUM, 60), "=="),
    _alone("newrelic-key", "NR", "AK-", some(_UPPER, 27)),
    _alone("sentry-token", "sn", "trys_", some(_BASE64, 80), "_", some(_BASE64, 43)),
    _alone("dynatrace-token", "dt", "0c01.", some(_UPPER, 24), ".", some(_UPPER, 64)),
    _alone("supabase-key", "sb", "p_", some(_HEX, 40)),
    _alone("supabase-key", "sb_", "secret_", some(_DASHED, 31)),
    _alone("planetscale-token", "psc", "ale_tkn_", some(_DASHED, 43)),
    _alone("heroku-api-key", "HR", "KU-", some(_DASHED, 60)),
    _alone("terraform-token", some(_ALNUM, 14), ".atl", "asv1.", some(_DASHED, 67)),
    _alone("tailscale-key", "ts", "key-auth-", some(_ALNUM, 17), "-", some(_ALNUM, 32)),
)

IN_CONTEXT: tuple[Canary, ...] = (
    _pem("RSA PRIVATE KEY"),
    _pem("OPENSSH PRIVATE KEY"),
    _pem("PRIVATE KEY"),
    _pem("PGP PRIVATE KEY BLOCK"),
    _within("putty-private-key", "Private-Lines: 2\n", "\n".join(some(_BASE64, 64) for _ in range(2))),
    _within("url-password", "postgresql://app:", some(_ALNUM, 12), "@db.internal:5432/app"),
    _within("url-password", "redis://:", "p%40ss" + some(_ALNUM, 8), "@cache:6379/0"),
    _within("url-password", "mongodb+srv://app:", "un/escaped@" + some(_ALNUM, 8), "@cluster0.example.net/x"),
    _within("url-password", "next=amqp%3A%2F%2Fapp%3A", some(_ALNUM, 14), "%40mq%2Fvhost"),
    _within("authorization", "Authorization: Basic ", _pair("ann", 9)),
    _within("authorization", "authorization: Bearer ", some(_ALNUM, 24)),
    _within("authorization", '"Authorization": "', some(_HEX, 32), '"'),
    _within("bearer-token", "curl -H 'X: Bearer ", some(_DASHED, 30)),
    _within("basic-credentials", "sent Basic ", _pair("bob", 12)),
    _within("cookie", "Cookie: ", "session=" + some(_ALNUM, 30)),
    _within("cookie", "Set-Cookie: ", "sid=" + some(_ALNUM, 30) + "; Path=/; HttpOnly"),
    _within("curl-password", "curl -sS -u ann:", some(_ALNUM, 11), " https://example.com/"),
    _within("curl-password", "curl -X POST \\\n  --user 'ann:", some(_ALNUM, 11), "' https://example.com/"),
    _within("netrc-password", "machine git.example.org login ann password ", some(_ALNUM, 10)),
    _within("netrc-password", "machine h\n  login ann\n  password ", some(_ALNUM, 10)),
    _within("mysql-password", "mysql -u root -p", some(_ALNUM, 10), " shop"),
    _within("mysql-password", "mariadb-dump --host db -p'", some(_ALNUM, 10), "' shop"),
    _within("aws-secret-access-key", "the aws account secret is ", some(_BASE64, 40)),
    _within("aws-secret-access-key", "Secret access key\t", " " + some(_BASE64, 40)),
    _within("twilio-auth-token", "twilio auth, new: ", some(_HEX, 32)),
    _within("datadog-key", "dd-api-key, rotated ", some(_HEX, 32)),
    _within("datadog-key", "datadog_app_key is ", some(_HEX, 40)),
)

ASSIGNED: tuple[Canary, ...] = (
    _within("password", "password=", some(_ALNUM, 9)),
    _within("password", "DB_PASSWORD=", "swordfish" + "er"),
    _within("password", '{"user": "ann", "password": "', some(_ALNUM, 8) + "!#", '"}'),
    _within("password", "password: '", some(_ALNUM, 10), "'"),
    _within("password", "passwort=", some(_ALNUM, 9)),
    _within("password", '"kennwort": "', some(_ALNUM, 9), '"'),
    _within("password", "passwd: ", some(_ALNUM, 12)),
    _within("password", 'connect(host, password="', some(_ALNUM, 6), '")'),
    _within("password", 'def f(password: str = "', some(_ALNUM, 9), '"): ...'),
    _within("password", "Server=db;Uid=sa;Pwd=", some(_ALNUM, 10), ";Encrypt=yes"),
    _within("password", "mysql --host db --password ", some(_ALNUM, 10) + "$"),
    _within("password", "<password>", some(_ALNUM, 10), "</password>"),
    _within("password", '"passphrase": "', "correct horse battery staple", '"'),
    _within("credential", "AWS_CREDS=", some(_ALNUM, 20)),
    _within("secret", "CLIENT_SECRET=", some(_ALNUM, 20)),
    _within("secret", '"clientSecret" : "', some(_ALNUM, 20), '"'),
    _within("secret", "config['secret'] = '", some(_ALNUM, 20), "'"),
    _within("token", "https://example.com/cb?access_token=", some(_ALNUM, 32), "&state=1"),
    _within("token", '"refreshToken":"', some(_ALNUM, 32), '"'),
    _within("token", "//registry.example.org/:_authToken=", some(_ALNUM, 36)),
    _within("key", "X-Api-Key: ", some(_ALNUM, 24)),
    _within("key", "api_key => '", some(_ALNUM, 24), "'"),
    _within("key", "tool --api-key ", some(_ALNUM, 24)),
    _within("key", "signing_key%3D", some(_ALNUM, 24)),
)

CANARIES = (*TOKENS, *IN_CONTEXT, *ASSIGNED)


def traces(canary: Canary, text: str) -> list[str]:
    """Give the lines of a secret that are still in a text."""
    return [line for line in canary.secret.splitlines() if line in text and not line.startswith("-----")]
