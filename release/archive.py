"""Reading a wheel or an sdist without unpacking it onto the disk."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path


def members_of(archive: Path) -> dict[str, bytes]:
    """Answer the files of a wheel or an sdist by their names; an sdist's own folder is left off."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist() if not name.endswith("/")}
    found = dict[str, bytes]()
    with tarfile.open(archive) as sdist:
        for member in sdist:
            if (file := sdist.extractfile(member)) is not None:
                found[member.name.partition("/")[2]] = file.read()
    return found


def metadata_of(wheel: Path) -> bytes:
    """Answer what a wheel says of itself."""
    (found,) = (data for name, data in members_of(wheel).items() if name.endswith(".dist-info/METADATA"))
    return found
