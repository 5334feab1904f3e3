"""Statements of a transaction, one by one."""

from __future__ import annotations

from holdfast.adapters.sqlite.driver import through_sqlite3
from holdfast.adapters.sqlite.transaction import SqliteTransaction, split


def test_a_transaction_answers_rows_and_counts_what_changed() -> None:
    connection = through_sqlite3().connect("file::memory:")
    transaction = SqliteTransaction(connection, 1)
    transaction.script("create table t (a integer);\ninsert into t values (1);\ninsert into t values (2)")
    assert transaction.run("update t set a = a + 1 where a > :least", {"least": 0}) == 2
    assert transaction.rows("select a from t order by a") == [(2,), (3,)]
    connection.close()


def test_a_script_is_taken_apart_into_its_statements() -> None:
    script = """
    -- a comment; with a semicolon
    create table a (n); create table b (n);
    create trigger c after insert on a begin
        delete from b; delete from b;
    end;
    insert into a values ('; -- ');
    select 1
    """
    statements = [statement.strip() for statement in split(script)]
    assert [statement.split()[-1] for statement in statements] == ["(n);", "end;", "');", "1"]
    assert list(split("\n \n")) == []
