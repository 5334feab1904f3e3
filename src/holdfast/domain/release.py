"""Which Holdfast this is: the only place that says so."""

from __future__ import annotations

__version__ = "0.1.0"

#: The fact by which the entry that begins a session tells which Holdfast wrote what follows.
PRODUCER_FACT = "holdfast"
