"""`python -m release.build`: makes wheel and sdist twice, compares and judges them, keeps them in dist/."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from release.archive import members_of, metadata_of
from release.changelog import source_epoch
from release.contents import names_of, sdist_problems, wheel_problems
from release.metadata import metadata_problems

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"


def main() -> None:
    """Build, and end with what is wrong if anything is."""
    epoch = source_epoch(ROOT / "CHANGELOG.md")
    with tempfile.TemporaryDirectory(prefix="holdfast-dist-") as folder:
        first = build(ROOT, Path(folder, "first"), epoch)
        again = build(
            _unpacked(first, Path(folder)), Path(folder, "again"), epoch, umask=0o077, zone="Asia/Tokyo"
        )
        later = build(ROOT, Path(folder, "later"), epoch + 86_400)
        problems = differences(first, again) + all_problems(first)
        if not differences(first, later):
            problems.append("the comparison is blind: archives of another day are said to be the same")
        if problems:
            sys.exit("\n".join(problems))
        _keep(first)


def build(source: Path, out: Path, epoch: int, *, umask: int = 0o022, zone: str = "UTC") -> list[Path]:
    """Make sdist and wheel of a folder; the tools are those of this environment."""
    command = [
        sys.executable,
        "-m",
        "uv",
        "build",
        "--quiet",
        "--no-build-isolation",
        "--python",
        sys.executable,
    ]
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "TZ": zone}
    subprocess.run([*command, "--out-dir", str(out), str(source)], check=True, env=env, umask=umask)
    return sorted(path for path in out.iterdir() if path.suffix in (".whl", ".gz"))


def _unpacked(archives: list[Path], folder: Path) -> Path:
    """Unpack the sdist, so that the second build has another place, other times and no repository."""
    (sdist,) = (path for path in archives if path.suffix == ".gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "elsewhere", filter="data")
    (source,) = (folder / "elsewhere").iterdir()
    return source


def differences(one: list[Path], other: list[Path]) -> list[str]:
    """Name the archives whose bytes are not the same."""
    sums, others = ({path.name: sum_of(path) for path in archives} for archives in (one, other))
    return [
        f"{name} is not the same when built again"
        for name in sorted({*sums, *others})
        if sums.get(name) != others.get(name)
    ]


def sum_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def all_problems(archives: list[Path]) -> list[str]:
    """Say what is wrong with a wheel and an sdist that were made here."""
    from trove_classifiers import classifiers

    wheel, sdist = sorted(archives, key=lambda path: path.suffix != ".whl")
    beside = members_of(sdist)
    # Names are those of the checkout, bytes those of the sdist: who goes on writing meanwhile does no harm.
    source = {name: beside.get(f"src/{name}", b"") for name in names_of(ROOT / "src" / "holdfast")}
    places = (str(ROOT), str(Path.home()), sys.prefix, tempfile.gettempdir() + "/holdfast-dist-")
    return [
        *wheel_problems(members_of(wheel), source, places),
        *sdist_problems(beside, places),
        *metadata_problems(metadata_of(wheel), version(), set(classifiers)),
    ]


def version() -> str:
    """Answer the one place that says which version this is."""
    scope: dict[str, str] = {}
    for line in (ROOT / "src" / "holdfast" / "domain" / "release.py").read_text("utf-8").splitlines():
        name, _, value = line.partition(" = ")
        scope[name] = value.strip('"')
    return scope["__version__"]


def _keep(archives: list[Path]) -> None:
    """Replace what is in dist/; what was made of the same bytes before may stay, bills for instance."""
    sums = "".join(f"{sum_of(archive)}  {archive.name}\n" for archive in archives)
    kept = DIST / "SHA256SUMS"
    if not kept.exists() or kept.read_text("utf-8") != sums:
        shutil.rmtree(DIST, ignore_errors=True)
        DIST.mkdir()
    for archive in archives:
        shutil.copyfile(archive, DIST / archive.name)
        print(f"{archive.stat().st_size:>9,} bytes  {sum_of(archive)}  {archive.name}", flush=True)
    kept.write_text(sums, "utf-8")


if __name__ == "__main__":
    main()
