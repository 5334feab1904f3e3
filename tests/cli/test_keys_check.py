from holdfast import bootstrap
from holdfast.domain.keyring_file import DATA_KEYS
from tests.cli.conftest import Run
from tests.cli.encrypted import encrypted_store, use_key
from tests.encrypted import NEW_KEY


def test_the_right_key_opens_everything(run: Run, monkeypatch, tmp_path):
    store = encrypted_store(run, monkeypatch, tmp_path)
    checked = run("keys", "check", "--store", store)
    assert checked.exit_code == 0 and checked.out.startswith("valid")
    told = run("keys", "check", "--json", "--store", store).data
    assert told["problems"] == [] and told["keys"] >= 2


def test_one_key_is_told_as_one(run: Run, monkeypatch, tmp_path):
    use_key(monkeypatch)
    monkeypatch.setenv("THE_NEW_KEY", NEW_KEY.hex())
    store = ("--store", tmp_path / "small")
    run("init", "--encrypt", *store)
    with bootstrap.open(str(store[1]), audit=False) as service:
        service.create_checkpoint("W", {})
    assert "1 data key can be opened" in run("keys", "check", *store).out
    rotate = ("keys", "rotate", "--new", "env:THE_NEW_KEY", *store)
    assert "Would wrap 1 data key by" in run(*rotate, "--dry-run").out
    assert run(*rotate).out.startswith("1 data key is wrapped by ")


def test_a_wrong_key_and_none_end_with_12(run: Run, monkeypatch, tmp_path):
    store = encrypted_store(run, monkeypatch, tmp_path)
    use_key(monkeypatch, NEW_KEY)
    assert run("keys", "check", "--store", store).exit_code == 12
    monkeypatch.delenv("HOLDFAST_ENCRYPTION_KEY")
    assert run("keys", "check", "--store", store).exit_code == 12


def test_a_damaged_key_ends_with_20(run: Run, monkeypatch, tmp_path):
    store = encrypted_store(run, monkeypatch, tmp_path)
    first, second, *_ = sorted((store / DATA_KEYS).iterdir())
    first.write_bytes(second.read_bytes())
    checked = run("keys", "check", "--store", store)
    assert checked.exit_code == 20 and "was changed" in checked.out
