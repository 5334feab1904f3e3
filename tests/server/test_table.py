from __future__ import annotations

import importlib
import pkgutil

from holdfast.server import api
from holdfast.server.table import OPERATIONS


def test_every_operation_of_every_module_is_in_the_table_once():
    modules = [
        importlib.import_module(f"{api.__name__}.{one.name}") for one in pkgutil.iter_modules(api.__path__)
    ]
    made = [one for module in modules for one in getattr(module, "OPERATIONS", ())]
    assert sorted(one.name for one in OPERATIONS) == sorted(one.name for one in made)


def test_names_and_places_are_unique():
    assert len({one.name for one in OPERATIONS}) == len(OPERATIONS)
    assert len({(one.method, one.path) for one in OPERATIONS}) == len(OPERATIONS)


def test_what_only_reads_never_acts():
    assert not any(one.acts for one in OPERATIONS if one.method == "GET")
