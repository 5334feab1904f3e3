"""What of a harness runs every day: a few of its cases, and all of them in a campaign."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def daily(
    everything: Iterable[Any], few: Collection[Any], *, otherwise: pytest.MarkDecorator = pytest.mark.campaign
) -> list[Any]:
    """Answer all cases for `parametrize`; those that are not among the few are left to the campaign.

    Args:
        otherwise: Where else they are left to.
    """
    cases = [(one, one if isinstance(one, tuple) else (one,)) for one in everything]
    return [one if one in few else pytest.param(*values, marks=otherwise) for one, values in cases]
