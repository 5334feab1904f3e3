"""Each type that Python brings along has a tag of its own, and comes back from it."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID

import pytest

from holdfast.domain.errors import UnstorableValueError
from holdfast.domain.standard_types import READERS, WRITERS
from holdfast.domain.tree import TAG
from tests.values import ZONES, Moon, fingerprint

VALUES = [
    *(datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=zone) for zone in (None, *ZONES)),
    *(time(14, tzinfo=zone) for zone in (None, ZONES[0], ZONES[3])),
    date(2026, 1, 11),
    timedelta(-1, 2, 3),
    UUID(int=7),
    Decimal("1.00"),
    (1, "a"),
    Path("a/b"),
    PurePosixPath("/a"),
    PureWindowsPath("c:\\a"),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_from_its_tag(value: Any) -> None:
    tagged = WRITERS[type(value)](value)
    assert fingerprint(READERS[tagged[TAG]](tagged)) == fingerprint(value)


def test_no_type_is_written_under_a_tag_that_nobody_reads() -> None:
    assert {type(value) for value in VALUES} == set(WRITERS)


def test_a_zone_that_nobody_could_find_again_is_refused() -> None:
    with pytest.raises(UnstorableValueError, match="ZoneInfo with a key"):
        WRITERS[datetime](datetime(2026, 1, 1, tzinfo=Moon()))
