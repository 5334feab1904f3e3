"""Waiting for what a server still does for clients that are dead."""

from __future__ import annotations

import psycopg

_OF_APPLICATION = "select pid from pg_stat_activity where application_name = %s"


def until_gone(administrator: str, application: str) -> None:
    """Return when no connection of an application is left: a commit that a dead client had sent still lands.

    Args:
        administrator: where to ask.
        application: the name that the clients gave when they connected.
    """
    with psycopg.connect(administrator, autocommit=True) as connection:
        while connection.execute(_OF_APPLICATION, [application]).fetchall():
            pass
