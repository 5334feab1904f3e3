"""What the tables take on disk, and giving back what removals left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.adapters.postgres.connection import Connection
from holdfast.adapters.postgres.database import PostgresDatabase

TABLES = ("checkpoints", "events", "keyframes", "blobs", "blob_uses", "leases", "audit", "files")

#: Below this a removal is left to autovacuum.
WORTH_VACUUMING_BYTES = 1024 * 1024

# Dead rows are taken to be as large as live ones. What a vacuum has already freed inside the files, for rows
# to come, is not counted: only an extension of the server could tell.
_SIZES = """
select c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid), (
    select coalesce(sum(
        pg_relation_size(part.relid) * part.n_dead_tup::float8
        / greatest(part.n_live_tup + part.n_dead_tup, 1)
    ), 0)::bigint
    from pg_stat_all_tables part where part.relid in (c.oid, c.reltoastrelid)
)
from pg_class c
where c.relnamespace = to_regnamespace(:schema) and c.relname = any(:tables::text[]) order by c.relname
"""


def sizes(database: PostgresDatabase) -> dict[str, Any]:
    """Tell bytes of tables, with their large values, and of indexes; and an estimate of what is dead."""
    found = database.rows(_SIZES, {"schema": _quoted(database), "tables": list(TABLES)})
    return {
        "table_bytes": {name: table for name, table, _, _ in found},
        "index_bytes": {name: index for name, _, index, _ in found},
        "disk_bytes": sum(table + index for _, table, index, _ in found),
        "reclaimable_bytes": sum(dead for _, _, _, dead in found),
    }


def vacuum(database: PostgresDatabase, tables: Sequence[str] = ()) -> None:
    """Make the room of removed rows of all tables, or of some, usable again; give back the end of the files.

    Commits go on meanwhile: only the last step needs a table for itself, and yields as soon as anybody waits.
    """

    def run(connection: Connection) -> None:
        connection.execute(f"vacuum (skip_locked) {', '.join(tables or TABLES)}".encode())

    with database.translated(is_writing=True):
        database.connections.persist(run)


def _quoted(database: PostgresDatabase) -> str:
    return '"' + database.connections.address.schema.replace('"', '""') + '"'
