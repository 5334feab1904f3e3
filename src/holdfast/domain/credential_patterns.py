"""What credentials look like: patterns that every linear-time engine takes, and `re` takes too.

Neither lookaround nor backreference. Each begins with letters that are fixed, so that engines are fast, and
nothing at the right end looks further: a text that held a match holds one still when it has grown. Letters
of any case are spelt out, since engines disagree on which letters are the same.
"""

from __future__ import annotations

from typing import NamedTuple

_ALNUM = "[A-Za-z0-9]"
_WORD = "[A-Za-z0-9_]"
_DASHED = "[A-Za-z0-9_-]"
_HEX = "[0-9a-f]"
_BASE64 = "[A-Za-z0-9+/]"
RUN_CHARS, LONG_RUN_CHARS = 16, 30
#: Inside a class: what engines disagree on when it is written as `\\s`.
BLANK = " \\t\\n\\r\\f\\v"
SPACES = "[ \\t]{0,8}"
#: The quote around a name, also in JSON inside a string of JSON.
QUOTE = "(?:\\\\{0,7}[\"'])"
#: A secret that does not begin in the middle of a word.
EDGE = "(?:\\A|[^A-Za-z0-9_])"


class CredentialKind(NamedTuple):
    """One kind of credential: what it is called, what it looks like, and what stands around it."""

    name: str
    secret: str
    before: str = ""
    after: str = ""
    #: What must stand right before a match. Judged afterwards: engines are slow with what is not fixed.
    lead: str = ""
    #: Whether the lead is a part of the secret.
    hide_lead: bool = False

    @property
    def expression(self) -> str:
        """Give the pattern, with one group: what is to be hidden."""
        return f"{self.before}({self.secret}){self.after}"


def any_case(word: str) -> str:
    """Write a word so that it matches in any case, in every engine alike."""
    return "".join(f"[{letter.upper()}{letter}]" if letter.isalpha() else letter for letter in word)


#: Known by their own look alone: `RUN_CHARS` or more in a row of letters, digits, `_` and `-`, or
#: `LONG_RUN_CHARS` of these and of the signs of base64 and URLs.
TOKENS: tuple[CredentialKind, ...] = (
    CredentialKind("aws-access-key-id", "AKIA[0-9A-Z]{16,}", lead=EDGE),
    CredentialKind("aws-access-key-id", "ASIA[0-9A-Z]{16,}", lead=EDGE),
    CredentialKind("aws-access-key-id", "ABIA[0-9A-Z]{16,}", lead=EDGE),
    CredentialKind("aws-access-key-id", "ACCA[0-9A-Z]{16,}", lead=EDGE),
    CredentialKind("aws-session-token", f"F[Qw]oGZXIvYXdz{_BASE64}{{40,}}={{0,2}}"),
    CredentialKind("aws-session-token", f"IQoJb3JpZ2lu{_BASE64}{{40,}}={{0,2}}"),
    CredentialKind("gcp-api-key", f"AIza{_DASHED}{{35,}}"),
    CredentialKind("google-oauth-token", f"ya29\\.{_DASHED}{{20,}}"),
    CredentialKind("google-oauth-secret", f"GOCSPX-{_DASHED}{{20,}}"),
    CredentialKind("google-refresh-token", f"1//0{_DASHED}{{30,}}"),
    CredentialKind("azure-sas-signature", "[A-Za-z0-9+/%]{40,}=?", before="sig=", lead="[?&;]"),
    CredentialKind("azure-api-key", f"JQQJ99{_ALNUM}{{20,}}", lead=f"{_ALNUM}{{40,64}}", hide_lead=True),
    CredentialKind("anthropic-api-key", f"sk-ant-{_DASHED}{{16,}}"),
    CredentialKind("openrouter-api-key", f"sk-or-{_DASHED}{{32,}}", lead=EDGE),
    CredentialKind("langfuse-secret-key", f"sk-lf-{_DASHED}{{32,}}", lead=EDGE),
    CredentialKind("openai-api-key", f"sk-(?:proj|svcacct|admin|None)-{_DASHED}{{20,}}", lead=EDGE),
    CredentialKind("openai-api-key", f"sk-{_ALNUM}{{32,}}", lead=EDGE),
    CredentialKind("github-token", f"gh[opsru]_{_ALNUM}{{30,}}"),
    CredentialKind("github-fine-grained-token", f"github_pat_{_WORD}{{22,}}"),
    CredentialKind(
        "gitlab-token",
        f"gl(?:pat|ptt|rt|dt|cbt|soat|ft|imt|agent|oas|ffct)-{_DASHED}{{16,}}(?:\\.{_DASHED}+){{0,3}}",
        lead=EDGE,
    ),
    CredentialKind("gitlab-runner-token", f"GR1348941{_DASHED}{{20,}}"),
    CredentialKind("slack-token", "xox[abceoprs](?:\\.xox[bp])?-[A-Za-z0-9-]{16,}"),
    CredentialKind("slack-app-token", "xapp-[0-9]-[A-Za-z0-9-]{16,}"),
    CredentialKind(
        "slack-webhook", f"{_BASE64}{{30,}}", before="hooks\\.slack\\.com/(?:services|workflows|triggers)/"
    ),
    CredentialKind("stripe-key", f"sk_(?:live|test|prod)_{_ALNUM}{{16,}}", lead=EDGE),
    CredentialKind("stripe-key", f"rk_(?:live|test|prod)_{_ALNUM}{{16,}}", lead=EDGE),
    CredentialKind("stripe-webhook-secret", f"whsec_{_BASE64}{{24,}}={{0,2}}"),
    CredentialKind("twilio-api-key", f"SK{_HEX}{{32,}}", lead=EDGE),
    CredentialKind("sendgrid-api-key", f"SG\\.{_DASHED}{{16,}}\\.{_DASHED}{{16,}}"),
    CredentialKind("mailgun-api-key", f"key-{_HEX}{{32,}}", lead=EDGE),
    CredentialKind("npm-token", f"npm_{_ALNUM}{{36,}}"),
    CredentialKind("pypi-token", f"pypi-A{_DASHED}{{50,}}"),
    CredentialKind("rubygems-token", f"rubygems_{_HEX}{{48,}}"),
    CredentialKind("docker-token", f"dckr_(?:pat|oat)_{_DASHED}{{20,}}"),
    CredentialKind("huggingface-token", f"hf_{_ALNUM}{{30,}}", lead=EDGE),
    CredentialKind("groq-api-key", f"gsk_{_ALNUM}{{40,}}"),
    CredentialKind("xai-api-key", f"xai-{_ALNUM}{{60,}}", lead=EDGE),
    CredentialKind("perplexity-api-key", f"pplx-{_ALNUM}{{40,}}"),
    CredentialKind("replicate-token", f"r8_{_ALNUM}{{36,}}", lead=EDGE),
    CredentialKind("pinecone-api-key", f"pcsk_{_WORD}{{40,}}"),
    CredentialKind("tavily-api-key", "tvly-[A-Za-z0-9-]{20,}"),
    CredentialKind("langsmith-api-key", f"lsv2_(?:pt|sk)_{_HEX}{{32,}}_{_HEX}{{10}}"),
    CredentialKind("wandb-api-key", f"wandb_v[0-9]_{_WORD}{{40,}}"),
    CredentialKind("elevenlabs-api-key", f"sk_{_HEX}{{48,}}", lead=EDGE),
    CredentialKind(
        "json-web-token", f"eyJ{_DASHED}{{14,400}}\\.{_DASHED}{{10,}}\\.{_DASHED}*(?:\\.{_DASHED}+){{0,2}}"
    ),
    CredentialKind("telegram-bot-token", f":AA{_DASHED}{{32,}}", lead="[0-9]{8,10}", hide_lead=True),
    CredentialKind(
        "discord-webhook",
        f"{_DASHED}{{60,}}",
        before="discord(?:app)?\\.com/api/(?:v[0-9]{1,2}/)?webhooks/[0-9]{1,20}/",
    ),
    CredentialKind("databricks-token", f"dapi{_HEX}{{32,}}(?:-[0-9])?", lead=EDGE),
    CredentialKind("vault-token", f"hv[brs]\\.{_DASHED}{{24,}}", lead=EDGE),
    CredentialKind("age-secret-key", "AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    CredentialKind("digitalocean-token", f"do[opr]_v1_{_HEX}{{60,}}"),
    CredentialKind("doppler-token", f"dp\\.(?:pt|st|ct|sa|scim|audit)\\.{_WORD}{{36,}}", lead=EDGE),
    CredentialKind("shopify-token", "shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}"),
    CredentialKind("square-token", f"sq0[a-z]{{3}}-{_DASHED}{{22,}}", lead=EDGE),
    CredentialKind("atlassian-token", f"ATATT3{_DASHED}{{50,}}(?:=[0-9A-F]{{8}})?"),
    CredentialKind("linear-api-key", f"lin_(?:api|oauth)_{_ALNUM}{{36,}}", lead=EDGE),
    CredentialKind("notion-token", f"ntn_{_ALNUM}{{40,}}", lead=EDGE),
    CredentialKind("postman-api-key", f"PMAK-{_HEX}{{24}}-{_HEX}{{34,}}"),
    CredentialKind("figma-token", f"figd_{_DASHED}{{36,}}"),
    CredentialKind("grafana-token", f"glsa_{_ALNUM}{{32}}_[0-9a-fA-F]{{8}}"),
    CredentialKind("grafana-token", f"glc_eyJ{_BASE64}{{30,}}={{0,2}}"),
    CredentialKind("newrelic-key", "NRAK-[A-Z0-9]{24,}"),
    CredentialKind("sentry-token", "sntry[su]_[A-Za-z0-9+/=_]{40,}"),
    CredentialKind("dynatrace-token", "dt0[a-z][0-9]{2}\\.[A-Z0-9]{24}\\.[A-Z0-9]{64,}"),
    CredentialKind("supabase-key", f"sbp_{_HEX}{{40,}}", lead=EDGE),
    CredentialKind("supabase-key", f"sb_secret_{_DASHED}{{20,}}", lead=EDGE),
    CredentialKind("planetscale-token", f"pscale_(?:tkn|oauth|pw)_{_DASHED}{{32,}}"),
    CredentialKind("heroku-api-key", f"HRKU-{_DASHED}{{30,}}"),
    CredentialKind(
        "terraform-token", f"\\.atlasv1\\.{_DASHED}{{60,}}", lead=f"{_ALNUM}{{14}}", hide_lead=True
    ),
    CredentialKind("tailscale-key", f"tskey-[a-z]+-{_DASHED}{{16,}}"),
)

_LABEL = "[ A-Z0-9]{0,30}PRIVATE KEY(?: BLOCK)?-----"
#: Stops at the next pair of dashes, so that many beginnings without an end cost no more than one.
_TO_THE_END = f"[^-]*(?:-[^-]+)*-----END{_LABEL}"
#: Lines of base64, the line breaks real ones or written as `\n`, also in JSON inside a string of JSON.
_LINES = "(?:(?:[ \\t\\r\\n\"',]|\\\\{1,7}[nrt])+[A-Za-z0-9+/=]{16,})+"

_SCHEME = "|".join(
    map(any_case, ("basic", "bearer", "token", "api-token", "digest", "bot", "apikey", "negotiate"))
)
_CREDENTIAL = "[A-Za-z0-9+/=_.~:-]"
_AUTHORIZATION = f"{any_case('authorization')}{QUOTE}?{SPACES}[:=]{SPACES}{QUOTE}?"
#: Long, with a digit in it: not a word.
_OPAQUE = f"[A-Za-z_.~+/=-]*[0-9]{_CREDENTIAL}{{12,}}"
#: Of a URL: what may stand in a user's name, in a password, and in a password after an unescaped `@`.
_NEVER = f"{BLANK}/@\"'<>\\\\"
_USER, _LETTER, _MORE = f"[^[:?#{_NEVER}]*", f"[^{_NEVER}]", f"(?:@[^?#,{_NEVER}]*)*"
_PASSWORD = f"(?:[0-9]+|[0-9]*[^0-9?#{_NEVER}]{_LETTER}*(?:/{_LETTER}+){{0,3}}){_MORE}"

#: A line, which may be continued on the next one.
_ONE_LINE = "(?:[^\\r\\n\\\\]|\\\\\\r?\\n|\\\\)"
_USER_OPTION = "(?:-u|--user|--proxy-user)[ =]{0,4}[\"']?"
_NEAR = "[^\\r\\n]{0,20}[ \"':=]"
_ARGUMENT = f"[^{BLANK}\"'\\\\]+"
#: `machine h login u password p`, on one line or on several, also in JSON inside a string of JSON.
_GAP, _FIELD = f"(?:[{BLANK}]|\\\\{{1,7}}[nrt])+", f"[^{BLANK}\\\\]+"
_NETRC_LOGIN = f"machine{_GAP}{_FIELD}{_GAP}login{_GAP}{_FIELD}{_GAP}password{_GAP}"
#: The first `-p` with something right behind it, in the same command.
_NEXT = "(?:[ ]|\\\\\\r?\\n)+"
_OTHER = f"(?:[^{BLANK};|&\\\\-]|-[^p{BLANK};|&\\\\])[^{BLANK};|&\\\\]*|-p?"
_MYSQL_OPTION = f"[a-z-]{{0,12}}(?:{_NEXT}(?:{_OTHER})){{0,12}}{_NEXT}-p[\"']?"
_SECRET_ACCESS_KEY = f"{any_case('secret')}[_ -]?{any_case('access')}[_ -]?{any_case('key')}"
_AWS_SECRET = f"{any_case('aws')}[^\\r\\n]{{0,20}}{any_case('secret')}"
_TWILIO_AUTH = f"{any_case('twilio')}[^\\r\\n]{{0,20}}{any_case('auth')}"
_DATADOG = f"[_-]{any_case('ap')}[IiPp][_-]?{any_case('key')}"

#: Known by what stands before them.
IN_CONTEXT: tuple[CredentialKind, ...] = (
    CredentialKind("private-key", f"-----BEGIN{_LABEL}(?:{_TO_THE_END}|{_LINES})"),
    CredentialKind("putty-private-key", _LINES, before="Private-Lines: [0-9]{1,3}"),
    CredentialKind("azure-account-key", f"{_BASE64}{{40,}}={{1,2}}", before="AccountKey="),
    CredentialKind("azure-account-key", f"{_BASE64}{{40,}}={{1,2}}", before="AccessKey="),
    CredentialKind("url-password", _PASSWORD, before=f"://{_USER}:", after="@"),
    CredentialKind(
        "azure-client-secret", "Q~[A-Za-z0-9_~.-]{31,}", lead="[A-Za-z0-9_~.-]{3}[0-9]", hide_lead=True
    ),
    CredentialKind(
        "url-password", "[A-Za-z0-9%._~!$*+-]{1,128}", before="%3A%2F%2F[A-Za-z0-9._~-]{0,64}%3A", after="%40"
    ),
    CredentialKind(
        "authorization",
        f"{_CREDENTIAL}{{4,}}",
        before=f"{_AUTHORIZATION}(?:{_SCHEME})[ \\t]+",
        lead="(?:\\A|[^A-Za-z0-9:])",
    ),
    CredentialKind("authorization", _OPAQUE, before=_AUTHORIZATION, lead="(?:\\A|[^A-Za-z0-9:])"),
    CredentialKind("bearer-token", _OPAQUE, before=f"{any_case('bearer')}[ \\t]+", lead=EDGE),
    CredentialKind(
        "basic-credentials", f"{_BASE64}{{6,}}={{1,2}}", before=f"{any_case('basic')}[ \\t]+", lead=EDGE
    ),
    CredentialKind(
        "cookie",
        "[A-Za-z0-9_.-]+=[^\\r\\n\"'\\\\]+",
        before=f"{any_case('cookie')}{QUOTE}?:{SPACES}{QUOTE}?",
        lead=EDGE,
    ),
    CredentialKind(
        "curl-password",
        f"[^{BLANK}\"'\\\\]+",
        before=f"curl {_ONE_LINE}{{0,200}}{_USER_OPTION}[^:$<{BLANK}\"']{{0,64}}:[\"']?",
        lead=EDGE,
    ),
    CredentialKind("netrc-password", _ARGUMENT, before=_NETRC_LOGIN, lead=EDGE),
    *(
        CredentialKind("mysql-password", _ARGUMENT, before=f"{program}{_MYSQL_OPTION}", lead=EDGE)
        for program in ("mysql", "mariadb")
    ),
    CredentialKind("aws-secret-access-key", f"{_BASE64}{{40,}}", before=f"{_SECRET_ACCESS_KEY}{_NEAR}"),
    CredentialKind("aws-secret-access-key", f"{_BASE64}{{40,}}", before=f"{_AWS_SECRET}{_NEAR}"),
    CredentialKind("twilio-auth-token", f"{_HEX}{{32}}", before=f"{_TWILIO_AUTH}{_NEAR}"),
    CredentialKind(
        "datadog-key", f"{_HEX}{{32}}(?:{_HEX}{{8}})?", before=f"{any_case('datadog')}{_DATADOG}{_NEAR}"
    ),
    CredentialKind(
        "datadog-key",
        f"{_HEX}{{32}}(?:{_HEX}{{8}})?",
        before=f"{any_case('dd')}{_DATADOG}{_NEAR}",
        lead=EDGE,
    ),
)
