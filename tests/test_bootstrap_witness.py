"""A witness put together signs for the logs it was given, at an address, and with the key it was told."""

from __future__ import annotations

import threading
from pathlib import Path

from holdfast.bootstrap_witness import open_witness, witness_at, witness_server
from tests.process.witnesses import request
from tests.trails import LOG_KEY, WITNESS_KEY, make_log

LOG = make_log(8, (4, 8))


def test_a_witness_listens_and_signs_what_grows(tmp_path: Path) -> None:
    WITNESS_KEY.save(tmp_path / "key")
    witness = open_witness(str(tmp_path / "key"), [LOG_KEY.key], str(tmp_path / "seen"))
    with witness_server(witness, "127.0.0.1:0") as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ask = witness_at(server.url)
        assert ask(request(LOG, 0, 0)).status == 200
        assert ask(request(LOG, 0, 1)).status == 409
        assert ask(request(LOG, 4, 1)).status == 200
        server.shutdown()


def test_a_key_is_made_only_under_a_name_and_used_from_then_on(tmp_path: Path) -> None:
    place = (str(tmp_path / "key"), [LOG_KEY.key], str(tmp_path / "seen"))
    first = open_witness(*place, name="witness.example/new")
    assert first.key.name == "witness.example/new"
    assert open_witness(*place, name="witness.example/other").key == first.key
