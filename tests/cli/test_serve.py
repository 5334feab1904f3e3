"""`holdfast serve`: a real process, asked over a real socket, and ended."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

import holdfast
from holdfast.server.serving import listen
from holdfast.server.settings import Settings
from tests.cli.conftest import without_privileges


@pytest.fixture
def store(tmp_path):
    with holdfast.open(str(tmp_path / "store")) as service:
        service.create_checkpoint("WF-1", {"a": 1})
    return str(tmp_path / "store")


@contextmanager
def serving(store, *flags):
    """Run the command; answer the process and what it told when it was ready."""
    command = [
        sys.executable,
        "-m",
        "holdfast",
        "serve",
        "--store",
        store,
        "--bind",
        "127.0.0.1:0",
        "--json",
        *flags,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        try:
            assert process.stdout is not None
            text = "".join(iter(process.stdout.readline, "}\n")) + "}"
            yield process, json.loads(text)
        finally:
            if process.poll() is None:
                process.kill()


def ask(told, path, token=None):
    token = token or told["page"].partition("#key=")[2]
    asked = urllib.request.Request(told["url"] + path, headers={"Authorization": f"Bearer {token}"})
    return urllib.request.urlopen(asked, timeout=30)


def test_it_tells_where_it_is_and_answers_there(run, store):
    with serving(store) as (process, told):
        assert told["store"] == f"file:{store}" and told["read_only"] is False
        with ask(told, "/v1/session") as answer:
            assert "admin" in json.load(answer)["scopes"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143


@pytest.mark.parametrize("flags", [[], ["--behind-proxy"]])
def test_behind_a_proxy_the_cookie_of_a_browser_never_leaves_tls(run, store, flags):
    with serving(store, *flags) as (process, told):
        body = json.dumps({"token": told["page"].partition("#key=")[2]}).encode()
        asked = urllib.request.Request(
            told["url"] + "/v1/session", body, {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert ("; Secure" in answer.headers["set-cookie"]) is bool(flags)
        process.terminate()
        process.wait(30)


def test_it_ends_while_somebody_listens(run, store):
    with serving(store) as (process, told), ask(told, "/v1/events") as stream:
        assert stream.readline() == b"retry: 3000\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert stream.read() is not None


def test_a_token_made_while_it_runs_is_good_and_a_revoked_one_is_not(run, store):
    with serving(store, "--read-only") as (process, told):
        made = json.loads(run("token", "create", "ann", "--store", store, "--json").out)
        with ask(told, "/v1/session", made["token"]) as answer:
            assert json.load(answer)["name"] == "ann"
        run("token", "revoke", made["id"], "--store", store)
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(told, "/v1/session", made["token"])
        assert refused.value.code == 401
        refused.value.close()
        process.terminate()
        process.wait(30)


def test_whoever_may_only_read_a_store_is_told_how_it_is_served(run, public_folder, monkeypatch):
    monkeypatch.chdir(public_folder)
    store = public_folder / "store"
    holdfast.open(str(store)).close()
    # What it loads for the first time may be readable by its owner only.
    assert run("serve", "--store", store, "--bind", "0.0.0.0:0").exit_code == 31
    for path in (store, *store.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    with without_privileges():
        refused = run("serve", "--store", store, "--bind", "127.0.0.1:0")
    assert refused.exit_code == 13 and "With --read-only it is served as it is." in refused.err


def test_a_public_server_without_a_token_is_refused(run, store):
    done = run("serve", "--store", store, "--bind", "0.0.0.0:0", "--json")
    assert done.exit_code == 31
    assert json.loads(done.err)["code"] == "no_token"


@pytest.mark.parametrize("flags", [[], ["--behind-proxy"]])
def test_a_public_server_without_tls_is_refused_unless_a_proxy_does_it(run, store, flags):
    run("token", "create", "ann", "--store", store)
    with listen(Settings("0.0.0.0", 0)) as taken:
        taken.listen()
        bind = ["--bind", f"0.0.0.0:{taken.getsockname()[1]}"]
        done = run("serve", "--store", store, *bind, "--json", *flags)
    # Behind a proxy it gets as far as the address, which is taken.
    assert json.loads(done.err)["code"] == ("invalid_config" if flags else "no_tls")


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (["--bind", "127.0.0.1:99999"], 2),
        (["--bind", "192.0.2.1:0"], 31),
        (["--tls-cert", "c.pem"], 2),
        (["--rate", "0"], 2),
    ],
)
def test_what_cannot_be_served_is_told(run, store, flags, code):
    assert run("serve", "--store", store, *flags).exit_code == code


def test_what_is_no_address_is_told_as_that(run, store, monkeypatch):
    def unknown(host: str, port: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", unknown)
    done = run("serve", "--store", store, "--bind", "nowhere:0")
    assert done.exit_code == 2 and "--bind: nowhere is no address" in done.err


def test_a_store_that_is_not_there_is_not_made(run, tmp_path):
    done = run("serve", "--store", str(tmp_path / "none"))
    assert done.exit_code == 10
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--rate", "nan"], "--rate is a number"),
        (["--rate", "inf"], "--rate is a number"),
        (["--allow-host", "http://kelp.example"], "without scheme and port"),
        (["--allow-host", "kelp.example:8787"], "without scheme and port"),
        (["--allow-host", "a b"], "without scheme and port"),
    ],
)
def test_a_setting_that_could_never_work_is_a_mistake(run, store, flags, said):
    result = run("serve", "--store", store, *flags)
    assert result.exit_code == 2 and said in result.err


def test_it_reveals_what_the_named_resolver_knows(run, store, tmp_path):
    with holdfast.open(store) as service:
        service.create_checkpoint("hides", {"password": "correct horse"})
    (tmp_path / "secrets").write_text("correct horse\n")
    (tmp_path / "secrets").chmod(0o600)
    with serving(store, "--resolver", f"file:{tmp_path}/secrets") as (process, told):
        asked = urllib.request.Request(
            f"{told['url']}/v1/checkpoints/hides@1/reveal",
            json.dumps({"reason": "ticket 7", "path": "/context/password"}).encode(),
            headers={
                "Authorization": f"Bearer {told['page'].partition('#key=')[2]}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert json.load(answer)["value"] == "correct horse"
        process.terminate()
        process.wait(30)


def test_a_resolver_that_is_none_is_refused_before_anything_is_served(run, store):
    done = run("serve", "--store", store, "--resolver", "word", "--json")
    assert (done.exit_code, done.error["code"]) == (2, "invalid_config")
