"""Ordinary texts and states of agents that hold no secret, and much that looks like one."""

from __future__ import annotations

from typing import Any

PROSE = [
    "The tokenizer splits the text into tokens; each token costs money, so watch the token count.",
    "Password: must be at least 12 characters and contain a digit.",
    "Her secret: patience. The key to success: preparation. The password is on a sticky note, they said.",
    "Basic authentication is deprecated; use Bearer tokens. Bearer authentication-is-required for all calls.",
    "Authorization: required. Authorization header missing. Authorization was granted by the team lead.",
    "We rotate keys every 90 days and tokens every 24h; secrets: 3 found, passwords: 0 found.",
    "Please enter your password: then press Enter. Forgot password? Reset password.",
    "Use sk-learn, not sk-image. The task-force met at risk-assessment-of-supply-chains-in-europe-2026.",
    "Key insight: secret sauce = good data + patience. Token economy: 12,000 tokens per run at $0.002.",
    "Cookie: a small sweet biscuit. Cookies are not tokens.",
    "Das Passwort ist geheim. Le mot de passe est secret.",
    "\u30d1\u30b9\u30ef\u30fc\u30c9\u306f\u79d8\u5bc6\u3067\u3059\u3002 token: \u5358\u8a9e",
    "The meeting is at 10:30; call +49 30 1234567 or write to ann.smith@example.com: subject password reset.",
    "It uses AES-256-GCM with a 96-bit nonce, HMAC-SHA-256, Argon2id, password hashing: bcrypt or sha256.",
    "token: a unit of text. api key: see the vault. secret: see the runbook. password: ask Bob.",
    "He said: \u201cthe access token expired\u201d and the refresh token: too.",
]

CODE = [
    'password = getpass.getpass("Password: ")',
    "def login(user: str, password: str, token: str | None = None) -> Session:",
    "client = OpenAI(api_key=os.environ['OPENAI_API_KEY'])",
    'api_key = os.getenv("ANTHROPIC_API_KEY")',
    "connect(user=user, password=password, token=self._token, secret=config.secret)",
    "headers = {'Authorization': f'Bearer {token}', 'X-Api-Key': api_key}",
    'headers["Authorization"] = "Bearer " + token',
    "const token = localStorage.getItem('token'); const password: string = form.password;",
    "if (token === null) { throw new Error('missing token'); }",
    "interface Login { username: string; password: string; accessToken?: string }",
    "token = next(tokens); while token != '(': token = lexer.next_token()",
    "tokens = tokenizer.encode(text); eos_token = '<|endoftext|>'; pad_token='[PAD]'",
    "max_tokens=4096, token_count=128, tokens_used=77, max_new_tokens = 512",
    "password_field = driver.find_element(By.NAME, 'password')",
    '<input type="password" name="password" id="password" autocomplete="current-password">',
    "DATABASE_URL=postgresql://${DB_USER}:${DB_PASSWORD}@${DB_HOST}:5432/app",
    'url = f"postgresql://{user}:{password}@{host}:{port}/{name}"',
    "postgresql://USER:PASSWORD@HOST:PORT/DATABASE and amqp://<user>:<password>@<host>",
    'dsn = "mysql://%s:%s@%s/%s" % (user, password, host, name)',
    "OPENAI_API_KEY=your-api-key-here\nSECRET_KEY=\nDB_PASSWORD=<password>\nTOKEN=xxxxxxxxxxxxxxxxxxxxxxxx",
    "  api_key: ${{ secrets.OPENAI_API_KEY }}\n  password: ${PASSWORD}\n  token: $TOKEN",
    "secretKeyRef:\n  name: db-credentials\n  key: password",
    "create user app with password :password; select token_count from usage where key = 'a';",
    "self.assertEqual(token.type, TokenType.NUMBER)  # token: Token",
    "private_key: ec.EllipticCurvePrivateKey, public_key: PKCS7PublicKeyTypes",
    'parser.add_argument("--password", help="the password"); parser.add_argument("--token", metavar="TOKEN")',
    "usage: tool [--password PASSWORD] [--token TOKEN] [--api-key KEY] FILE",
    "raise ValueError('password: too short')",
    "curl -u user:$PASSWORD https://example.com; curl -X POST https://example.com/a:b",
    'const secret = process.env.CLIENT_SECRET ?? "";',
    "match token { Token::Key(key) => key, _ => panic!() }",
    "ghp_" + "x" * 36 + " and sk-" + "proj-" + "x" * 40 + " and xoxb-" + "x" * 12 + "-" + "x" * 24,
    "sig = inspect.signature(func); print(sig=sig)",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQU\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZ0Mhb7cJ8W0m\n-----END PUBLIC KEY-----",
    'START = "-----BEGIN PRIVATE KEY-----"\nEND = "-----END PRIVATE KEY-----"',
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0Zx1Kv7GqkW2rE5nq3pQdJm3w8yY1n5oJ6mO5u2c7K ann@host",
]

DATA = [
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 (aws deploy)",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "550e8400-e29b-41d4-a716-446655440000 01HZX3Q8Y7K9V2M4N6P8R0S2T4 cjld2cjxh0000qzrmn831i7rn",
    "https://example.com:8443/a/b?q=1&page=2#frag and http://user@example.com/ and ftp://example.com:21/a@b",
    "https://maps.example.com/@52.5,13.4,12z https://x.example/path:with:colons@at",
    "/usr/lib/python3.11/site-packages/holdfast/domain/credential_patterns.py:123: in secret_kind",
    "pip install google-re2==1.1.20251105 scikit-learn sk-dist task-sk-runner-abcdefghijklmnopqrstuvwxyz",
    "arn:aws:iam::123456789012:role/deploy",
    "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbCdEf",
    "arn:aws:secretsmanager:us-west-2:123456789012:secret:MyTestSecret-a1b2c3 is a name",
    '{"AWS::IAM::AccessKey": "07e165b51798ce89", "AWS::Redshift::EndpointAuthorization": "07e165b51798ce89"}',
    "aws dynamodb list-tables --starting-token eyJFeGNsdXNpdmVTdGFydEtleSI6IG51bGx9",
    "SEC_I_INCOMPLETE_CREDENTIALS: Final = 0x00090320",
    "projects/my-project/secrets/db-password/versions/3",
    "2026-01-11T14:30:00.000000Z INFO holdfast: token usage prompt=812 completion=77 total=889",
    "token=12 tokens=4096 token_id: 50256, key=42, key: value, api: v1",
    "secret_count: 3, password_age_days: 12",
    '{"usage": {"prompt_tokens": 12, "completion_tokens": 34, "total_tokens": 46, "max_tokens": 4096}}',
    '{"token": "Hello", "logprob": -0.31, "top_logprobs": [{"token": "Hi", "logprob": -1.2}]}',
    '{"type": "object", "properties": {"password": {"type": "string"}, "token": {"type": "string"}}}',
    '{"next_page_token": "CAUQAA1b2c3d4e5f6g7h8", "nextPageToken":"CAUQAA1b2c3d4e5f6g7h8"}',
    '{"password": null, "secret": true, "token": "", "api_key": "string", "has_password": false}',
    "AKIA is the prefix of key ids; ghp_ that of GitHub tokens, xoxb- of Slack's, eyJ of JWTs.",
    "eyJ0eXAi is how a JSON web token begins. hf_model_name, npm_config_registry, glpat-, dapi, SG.1, hvs.x",
    "GET /v1/tokens?limit=10&cursor=abc HTTP/1.1\nHost: example.com\nAccept: */*\nCookie:\n",
    "4111 1111 1111 1111 is a card number of the test range, DE89 3704 0044 0532 0130 00 an account.",
    "| key | token | secret |\n|-----|-------|--------|\n| a | b | c |",
    "x" * 500 + " " + "-" * 200 + "=" * 80 + "_" * 60,
    "QWxhZGRpbjpvcGVuIHNlc2FtZQ== is base64 in a text; SGVsbG8gd29ybGQsIHRoaXMgaXMgYSBsb25nIHRleHQ= too",
    "SGVsbG8gd29ybGQsIHRoaXMgaXMgYSBsb25nIHRleHQgd2l0aG91dCBhbnl0aGluZw==",
    "id=AC0123456789abcdef0123456789abcdef sid=SKILL-0123456789abcdef0123456789abcdef",
    "[REDACTED] and [REDACTED:password] and [REDACTED:password:0123abcd] and [redacted:x:00000000]",
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16") * 100,
]

HARMLESS = [*PROSE, *CODE, *DATA]

STATES: list[Any] = [
    {"usage": {"prompt_tokens": 12, "completion_tokens": 34, "total_tokens": 46, "cached_tokens": 0}},
    {
        "max_tokens": 4096,
        "token_count": 3,
        "tokens_used": 12,
        "tokens": 77,
        "token_budget": 1_000,
        "token": 50256,
    },
    {
        "tokens": ["Hello", "world"],
        "token_ids": [1, 2],
        "token_type": "word",
        "n_tokens": 2,
        "cost_per_token": 0.001,
    },
    {
        "logprobs": {
            "content": [{"token": "Hello", "logprob": -0.3, "top_logprobs": [{"token": "Hi", "logprob": -1}]}]
        }
    },
    {
        "tools": [
            {
                "name": "login",
                "input_schema": {
                    "type": "object",
                    "properties": {
                        "password": {"type": "string", "description": "The password of the user."},
                        "api_key": {"type": "string"},
                        "tokens": {"type": "integer"},
                    },
                    "required": ["password"],
                },
            }
        ]
    },
    {
        "next_page_token": "CAUQAA",
        "nextPageToken": "CAUQAA",
        "continuation_token": "abc",
        "fencing_token": "7",
    },
    {
        "eos_token": "</s>",
        "bos_token": "<s>",
        "pad_token": "[PAD]",
        "stop_token": "###",
        "unk_token": "<unk>",
    },
    {
        "session_id": "s-1",
        "workflow_id": "WF-1",
        "primary_key": "id",
        "sort_key": "name",
        "key": "value",
        "keys": ["a", "b"],
        "cache_key": "abc",
        "idempotency_key": "abc",
        "public_key": "ssh-ed25519 AAAA",
    },
    {
        "password": None,
        "has_password": True,
        "requires_api_key": False,
        "secret": "",
        "secrets": [],
        "cookies": {},
    },
    {
        "secret_name": "db-password",
        "secret_arn": "arn:aws:x",
        "token_url": "https://example.com/token",
        "password_policy": {"min": 12},
        "private_key_path": "/etc/keys/a.pem",
        "token_endpoint": "/oauth/token",
    },
    {"messages": [{"role": "user", "content": text} for text in HARMLESS]},
    {
        "metrics": {"p95": 1.5, "count": 3},
        "confidence": 0.9,
        "artifacts": [b"\x89PNG\r\n\x1a\n" + bytes(range(256))],
    },
    ["text", 1, None, True, 1.5, b"bytes", {"nested": [[[]]]}],
    "just a text",
    42,
    None,
]
