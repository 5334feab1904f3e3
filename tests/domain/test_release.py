from __future__ import annotations

import re

import holdfast
from holdfast.domain.release import PRODUCER_FACT, __version__


def test_the_version_is_one_and_has_three_numbers():
    assert holdfast.__version__ is __version__
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", __version__)


def test_the_fact_has_a_name_that_an_entry_may_have():
    assert re.fullmatch("[a-z_]+", PRODUCER_FACT)
