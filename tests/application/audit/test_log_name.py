"""Whether a head can be signed here is known without what signs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from holdfast.adapters.crypto.keystore import KeyFolder
from holdfast.application.audit.log_name import known_origin, signer_here
from holdfast.application.service import CheckpointService
from tests.application.services import make_kit


def test_a_log_without_a_key_has_nobody_who_signs(tmp_path: Path) -> None:
    kit = replace(make_kit(), signing=KeyFolder(folder=tmp_path))
    with CheckpointService(kit) as service:
        assert (known_origin(kit.store), signer_here(kit)) == ("", None)
        name = service.audit.keeper.origin()
        assert (known_origin(kit.store), signer_here(kit)) == (name, None)
        service.audit.keeper.anchor(create_key=True)
        signer = signer_here(kit)
        assert signer is not None and signer.key.name == name
        assert signer_here(replace(kit, signing=None)) is None


def test_the_end_signs_a_head_just_where_there_is_a_key(tmp_path: Path) -> None:
    kit = replace(make_kit(), signing=KeyFolder(folder=tmp_path))
    engine = CheckpointService(kit)._engine
    engine._sign()
    assert not engine.has_made("keeper")
    engine.keeper.anchor(create_key=True)
    signed = len(list(engine.keeper.heads()))
    engine.trail.record(*engine.trail.told("SOMETHING_HAPPENED"))
    engine._sign()
    assert len(list(engine.keeper.heads())) == signed + 1
