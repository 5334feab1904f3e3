"""The way in for a process: whoever is interrupted while modules are read ends as at any other moment."""

from __future__ import annotations

import sys

#: `Exit.INTERRUPTED`, for as long as nothing of ours is read yet.
_INTERRUPTED = 130


def main() -> int:
    """Run the command line of this process and answer its exit code."""
    try:
        from holdfast.cli.exits import was_interrupted

        try:
            from holdfast.cli.main import main as run

            return run()
        except Exception as error:
            # Some of what is read is no Python, and makes an error of its own of an interrupt.
            if not was_interrupted(error):
                raise
    except KeyboardInterrupt:
        pass
    sys.stderr.write("error: interrupted\n")
    return _INTERRUPTED
