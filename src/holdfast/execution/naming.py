"""Names of what one attempt does: the second of a name is told from the first in each attempt alike."""

from __future__ import annotations

from holdfast.domain.errors import InvalidStateError
from holdfast.execution.results import step_name


class Names:
    """The names that one attempt has given out, by what each of them was made for."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._counts: dict[tuple[str, str, str | None], int] = {}
        self._owners: dict[tuple[str, str], tuple[str, str, str | None]] = {}

    def numbered(self, kind: str, name: str, key: str | None = None) -> str:
        """Name the next one of a kind that is called so: `name`, `name#2`; by its key `name[key]`.

        Raises:
            InvalidStateError: another one is known by just that name.
        """
        asked = kind, name, key
        count = self._counts.get(asked, 0) + 1
        called = step_name(name, key, count)
        if self._owners.setdefault((kind, called), asked) != asked:
            _, other, _ = self._owners[kind, called]
            raise InvalidStateError(
                f"two things of the kind {kind!r} would be known as {called!r}: one called {other!r},"
                f" and one called {name!r}",
                place=self._place,
                hint="Call one of them otherwise: `#2` ends the second of a name, `[x]` one with the key x.",
            )
        self._counts[asked] = count
        return called
