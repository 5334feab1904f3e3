from tests.cli.conftest import Run
from tests.cli.encrypted import encrypted_store


def test_with_the_key_it_tells_whose_they_are(run: Run, monkeypatch, tmp_path):
    store = encrypted_store(run, monkeypatch, tmp_path)
    shown = run("keys", "list", "--store", store).out
    assert "workflow:WF-1" in shown and "workflow:WF-2" in shown
    told = run("keys", "list", "--json", "--store", store).data
    assert {key["scope"] for key in told["keys"]} >= {"workflow:WF-1", "workflow:WF-2"}
    assert told["locked"] is False


def test_without_the_key_it_tells_ids_only(run: Run, monkeypatch, tmp_path):
    store = encrypted_store(run, monkeypatch, tmp_path)
    monkeypatch.delenv("HOLDFAST_ENCRYPTION_KEY")
    shown = run("keys", "list", "--store", store)
    assert "WF-1" not in shown.out and "cannot be told" in shown.err
    told = run("keys", "list", "--json", "--store", store).data
    assert {key["scope"] for key in told["keys"]} == {None} and told["locked"] is True
