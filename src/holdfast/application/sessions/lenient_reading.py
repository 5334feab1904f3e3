"""Reading for a program that may not know all types of a store: what it does not know stays as stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from holdfast.application.lenient import revive_known
from holdfast.application.migrating import is_current
from holdfast.application.reading import Reader
from holdfast.application.resolve import Found
from holdfast.application.restore import Restored
from holdfast.application.revealing import Revealed, reveal
from holdfast.domain.event import Event


class LenientReader(Reader):
    """Answers states and events whose values of unknown classes are `Unknown`."""

    def revived(self, found: Found, restored: Restored) -> tuple[Any, Revealed]:
        """Answer the fields of a state, as far as their types are known here."""
        if not is_current(self._kit, restored.schema):
            # Only the program that knows the step to its version can take it.
            return super().revived(found, restored)
        tree = self.whole(found, restored)
        revealed = reveal(tree, self._kit.resolver, self._kit.packer)
        return revive_known(tree, self._kit.registry), revealed

    def with_values(self, event: Event) -> Event:
        """Answer an event whose data are values, as far as their types are known here."""
        return replace(event, data=revive_known(event.data, self._kit.registry))
