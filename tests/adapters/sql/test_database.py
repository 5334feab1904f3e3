"""The shapes that the shared statements rely on fit what an adapter offers."""

from __future__ import annotations

import pytest

from holdfast.adapters.sql.database import NOTHING, Database, Script, Transaction
from holdfast.adapters.sqlite.database import SqliteDatabase


def test_an_adapter_offers_what_the_statements_need(database: SqliteDatabase) -> None:
    tables: Database = database
    assert tables.rows("select 1, 'two', x'03'") == [(1, "two", b"\x03")]
    with tables.transaction() as transaction:
        changing: Transaction = transaction
        assert changing.rows("select :given", {"given": "é"}) == [("é",)]
        assert changing.run("delete from events") == 0
    with database.migrating() as transaction:
        script: Script = transaction
        script.script("create table one (n integer); -- and\ninsert into one values (1);")
    assert tables.rows("select n from one") == [(1,)]


def test_no_parameters_stay_none() -> None:
    assert dict(NOTHING) == {}
    with pytest.raises(TypeError):
        NOTHING["a"] = 1  # type: ignore[index]
