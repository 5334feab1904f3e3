from holdfast.cli.keys import KEYS_COMMANDS
from tests.cli.conftest import Run, load
from tests.cli.encrypted import VARIABLE, encrypted_store, use_key
from tests.encrypted import NEW_KEY


def test_every_command_about_keys_is_listed_and_loads(run: Run):
    shown = run("keys", "--help").out
    for name, (_, summary) in KEYS_COMMANDS.items():
        assert summary in shown
        assert load(f"keys {name}").name == name


def test_without_its_key_a_store_is_listed_and_validated_and_not_read(run: Run, monkeypatch, tmp_path):
    store = encrypted_store(run, monkeypatch, tmp_path)
    assert run("show", "WF-1@latest", "--store", store).exit_code == 0
    monkeypatch.delenv("HOLDFAST_ENCRYPTION_KEY")
    assert "WF-1" in run("list", "--store", store).out
    assert run("validate", "--deep", "--store", store).exit_code == 0
    refused = run("show", "WF-1@latest", "--json", "--store", store)
    assert (refused.exit_code, refused.error["code"]) == (12, "key_unavailable")
    assert f"env:{VARIABLE}" in refused.error["place"]
    use_key(monkeypatch, NEW_KEY)
    assert run("diff", "WF-1@1", "WF-1@2", "--store", store).exit_code == 12


def test_a_key_for_a_store_in_the_clear_is_refused(run: Run, monkeypatch, store):
    use_key(monkeypatch)
    refused = run("list", "--store", store)
    assert refused.exit_code == 2 and "not encrypted" in refused.err
    assert run("keys", "check", "--store", store).exit_code == 2


def test_a_store_in_the_clear_has_no_keys(run: Run, store):
    for name in ("list", "check"):
        assert run("keys", name, "--store", store).exit_code == 2


def test_no_store_is_made_without_the_key_it_should_have(run: Run, tmp_path, monkeypatch):
    monkeypatch.delenv("HOLDFAST_ENCRYPTION_KEY", raising=False)
    assert run("init", "--encrypt", "--store", tmp_path / "new").exit_code == 12
    use_key(monkeypatch)
    assert run("init", "--store", tmp_path / "new").exit_code == 2
    assert not (tmp_path / "new").exists()
