"""Nobody is half-way through an import or a compilation while the process forks.

A forked child has one thread, and whatever locks the others held at that moment, those of imports too: it
would wait for ever to import what another thread of its parent was just importing. Whoever imports or
compiles late, in a thread, holds this lock; so does the fork.
"""

from __future__ import annotations

import os
import threading

GATE = threading.RLock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=GATE.acquire, after_in_parent=GATE.release, after_in_child=GATE.release)
