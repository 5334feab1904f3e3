"""Run a command in a network where nobody else is: `unshare --net python alone.py COMMAND`."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys

_SET_FLAGS = 0x8914
_UP = 0x1


def main() -> None:
    """Bring loopback up, which a new network has and has not switched on, and become the command."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, _SET_FLAGS, struct.pack("16sh", b"lo", _UP))
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
