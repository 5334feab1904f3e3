"""The part of a commit's statement for blobs: each is kept once; one that is not what it is called is mended.

The server compares what a commit brings with what it has: nobody is told that a value is kept because
something else lies under its name. The wrong bytes are set aside, as `adapters/wrong_bytes.py` says.
"""

from __future__ import annotations

from holdfast.adapters.wrong_bytes import WRONG_BLOB
from holdfast.domain.quarantine_marks import FOLDER


def keeping(brought: str) -> list[str]:
    """Write the parts that keep blobs; `brought` answers what units bring, `first` which of them got in."""
    return [
        f"brought as materialized (select n.sha256, n.data from ({brought}) as n(workflow_id, sha256, data) "
        "join first using (workflow_id))",
        "wrong as materialized (select b.sha256, b.data, n.data as right_data, "
        "encode(sha256(b.data), 'hex') as found from blobs b join brought n using (sha256) "
        "where b.data <> n.data)",
        "news as (insert into blobs (sha256, data) select sha256, data from brought "
        "order by sha256 on conflict do nothing)",
        f"aside as (insert into files (name, data) {_EVIDENCE} on conflict do nothing)",
        "mended as (update blobs b set data = w.right_data from wrong w where b.sha256 = w.sha256)",
    ]


_PLACE = "'blob ' || sha256"
_NAME = (
    f"'{FOLDER}' || left(encode(sha256(convert_to({_PLACE}, 'UTF8')), 'hex'), 8) "
    "|| '-blob_' || sha256 || '-' || left(found, 16)"
)
_REPORT = (
    f"json_build_object('place', {_PLACE}, 'reason', '{WRONG_BLOB}', 'sha256', found, "
    "'bytes', octet_length(data), 'found_at', to_char(clock_timestamp() at time zone 'UTC', "
    """'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"'), 'kind', 'file')"""
)
_EVIDENCE = (
    f"select {_NAME} || '.bin', data from wrong union all "
    f"select {_NAME} || '.json', convert_to({_REPORT}::text || chr(10), 'UTF8') from wrong"
)
