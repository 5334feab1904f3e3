"""Tokens on the command line: made and listed, for the tests of the room."""

from __future__ import annotations

import json


def create(run, store, *words):
    return json.loads(run("token", "create", *words, "--store", store, "--json").out)


def listed(run, store):
    return json.loads(run("token", "list", "--store", store, "--json").out)["tokens"]
