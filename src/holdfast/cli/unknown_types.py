"""Types that were asked for and that nothing has: a slip of the pen must not look like an answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import click

from holdfast.cli.group import did_you_mean
from holdfast.cli.output import safe

#: In the lines of events and of the trail alike; a fact of that name is taken along, which does no harm.
_TYPE = re.compile(rb'"type":"([^"\\]*)"')


def warn_of_unknown(wanted: Collection[str], known: Collection[str], lines: Iterable[bytes]) -> None:
    """Name those types that are not known and that no line has, with what may have been meant.

    It is no refusal: applications have types of their own, which may come yet. Without such a type nothing
    is read.
    """
    strange = set(wanted).difference(known)
    if not strange:
        return
    there = {found.decode("utf-8", "replace") for line in lines for found in _TYPE.findall(line)}
    for type in sorted(strange - there):
        meant = did_you_mean(type, sorted({*known, *there}))
        click.echo(f"warning: nothing here is of type {safe(type)}. {safe(meant)}".rstrip(), err=True)
