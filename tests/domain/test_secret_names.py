"""Names that announce a secret, in every spelling, and names that only look so."""

from __future__ import annotations

import pytest

from holdfast.domain.secret_names import secret_kind, squash

TELLING = {
    "password": "password passwd PASSWORD userPassword db-password DB_PASSWORD passphrase new_password1 "
    "pwd DB_PWD password_hash passwordHash root.password otp user_otp passcode "
    "passwort Kennwort DB_PASSWORT pin PIN",
    "secret": "secret client_secret clientSecret CLIENT-SECRET webhook.secret secrets appSecrets "
    "secret_value",
    "token": "token access_token accessToken X-Auth-Token refreshToken bearer idToken jwt api_tokens "
    "csrf_token CSRFToken sessionToken token2 userJWT",
    "key": "api_key apiKey APIKey apikey X-API-Key API_KEYS privateKey private_key secret_access_key ssh-key "
    "signingKey encryption_key accountKey masterKey",
    "authorization": "authorization Authorization Proxy-Authorization auth_header",
    "credential": "credential credentials awsCredentials creds",
    "cookie": "cookie Cookie Set-Cookie cookies session_cookie",
}
HARMLESS = (
    "max_tokens token_count tokens_used tokens total_tokens promptTokens token_budget tokenizer "
    "token_type token_ids n_tokens cached_tokens cost_per_token time_to_first_token next_page_token "
    "nextPageToken page_token continuation_token eos_token bos_token pad_token stop_token "
    "fencing_token lease_token resume_token key keys primary_key foreignKey cache_key "
    "idempotency_key public_key keyboard monkey sort_key key_id access_key_id private_key_id "
    "private_key_path secret_name secret_arn secretary password_policy passport password_reset_url "
    "compass token_url authorization_url author authority session_id session cookie_policy laptop "
    "data v _ 1 hotspot jot pin_code gpio_pin pinned pins spin"
)


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in TELLING for name in TELLING[kind].split()]
)
def test_names_of_secrets_are_known(kind: str, name: str) -> None:
    assert secret_kind(name) == kind


@pytest.mark.parametrize("name", [*HARMLESS.split(), "", " ", "\u9375", "----"])
def test_other_names_are_not(name: str) -> None:
    assert secret_kind(name) is None


def test_spellings_are_squashed_alike() -> None:
    assert {squash(name) for name in ("home_address", "homeAddress", "Home-Address", "HOME ADDRESS")} == {
        "homeaddress"
    }
