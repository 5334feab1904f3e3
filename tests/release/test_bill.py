"""The bill of materials names what is there, once, in the same bytes."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from release.archive import members_of
from release.bill import Package, Wheel, bill, packages_in
from release.build import ROOT
from release.vendored import FOLDER, Script, scripts_of

WHEEL = Wheel(
    "1.0", "ab" * 32, 1_794_787_200, [Script(f"{FOLDER}a.js", "cd" * 32, (("@kelp/a", "2.0", "MIT"),))]
)
PACKAGES = [
    Package("click", "8.1", "BSD-3-Clause"),
    Package("holdfast", "1.0", "Apache-2.0", ["click", "kelp"]),
    Package("kelp", "3.0+cpu", "MIT", ["click"]),
]
NAMES = ("preact", "@preact/signals", "@preact/signals-core", "htm")


def test_a_bill_names_packages_scripts_and_who_needs_whom() -> None:
    made = bill(WHEEL, "server", PACKAGES)
    assert made["metadata"]["timestamp"] == "2026-11-16T00:00:00Z"
    assert made["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": "ab" * 32}]
    assert [each["name"] for each in made["components"]] == ["click", "kelp", f"{FOLDER}a.js"]
    assert made["components"][2]["components"][0]["purl"] == "pkg:npm/%40kelp/a@2.0"
    assert {each["ref"]: each["dependsOn"] for each in made["dependencies"]} == {
        "pkg:pypi/holdfast@1.0": [f"{FOLDER}a.js", "pkg:pypi/click@8.1", "pkg:pypi/kelp@3.0%2Bcpu"],
        "pkg:pypi/click@8.1": [],
        "pkg:pypi/kelp@3.0%2Bcpu": ["pkg:pypi/click@8.1"],
    }


def test_another_package_makes_another_bill_and_the_same_ones_the_same() -> None:
    assert bill(WHEEL, "", PACKAGES) == bill(WHEEL, "", list(PACKAGES))
    other = [*PACKAGES[:2], Package("kelp", "3.1", "MIT", ["click"])]
    assert bill(WHEEL, "", other)["serialNumber"] != bill(WHEEL, "", PACKAGES)["serialNumber"]


def install(folder: Path, name: str, *needs: str) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", "License-Expression: MIT"]
    (info / "METADATA").write_text("\n".join([*lines, *(f"Requires-Dist: {need}" for need in needs), ""]))


def test_who_needs_whom_is_followed_through_extras_whatever_the_order_on_the_disk(tmp_path: Path) -> None:
    wanted = {
        "holdfast": ['kelp[fast]; extra == "server"', 'ray; extra == "ray"'],
        "kelp": ['Rope_Two; extra == "fast"', 'anchor; extra == "slow"', 'old; python_version < "3"'],
        "rope-two": [],
        "anchor": [],
    }
    found = []
    for number in range(3):
        names = list(wanted)
        random.Random(number).shuffle(names)
        for name in names:
            install(tmp_path / str(number), name, *wanted[name])
        found.append(packages_in(tmp_path / str(number), "server", python="3.11"))
    assert found[0] == found[1] == found[2]
    assert {each.name: each.needs for each in found[0]} == {
        "anchor": [],
        "holdfast": ["kelp"],
        "kelp": ["rope-two"],
        "rope-two": [],
    }


@pytest.fixture
def members() -> dict[str, bytes]:
    folder = ROOT / "src" / FOLDER
    return {FOLDER + path.name: path.read_bytes() for path in folder.iterdir()}


def test_vendored_scripts_are_told_with_their_sums_and_licences(members: dict[str, bytes]) -> None:
    [script] = scripts_of(members)
    assert tuple(name for name, _, _ in script.packages) == NAMES
    assert len(script.sha256) == 64


def test_a_vendored_script_that_was_changed_or_is_not_told_of_is_refused(members: dict[str, bytes]) -> None:
    with pytest.raises(ValueError, match=r"preact\.js has the sum"):
        scripts_of(members | {f"{FOLDER}preact.js": b"changed"})
    with pytest.raises(ValueError, match="there are"):
        scripts_of(members | {f"{FOLDER}other.js": b"new"})


def test_the_notice_names_every_vendored_package_with_version_and_licence(members: dict[str, bytes]) -> None:
    notice = (ROOT / "NOTICE").read_text("utf-8")
    [script] = scripts_of(members)
    wanted = [f"  {name} {version} ({licence})" for name, version, licence in script.packages]
    assert [line for line in notice.splitlines() if line.startswith("  ")] == wanted


def test_a_bill_is_written_in_one_way() -> None:
    one, other = (json.dumps(bill(WHEEL, "", PACKAGES), sort_keys=True) for _ in range(2))
    assert one == other


def test_an_archive_is_read_without_its_folder(tmp_path: Path) -> None:
    import tarfile
    import zipfile

    (tmp_path / "a.txt").write_text("a")
    with tarfile.open(tmp_path / "holdfast-1.0.tar.gz", "w:gz") as sdist:
        sdist.add(tmp_path / "a.txt", "holdfast-1.0/docs/a.txt")
    with zipfile.ZipFile(tmp_path / "holdfast-1.0-py3-none-any.whl", "w") as wheel:
        wheel.write(tmp_path / "a.txt", "holdfast/a.txt")
    assert members_of(tmp_path / "holdfast-1.0.tar.gz") == {"docs/a.txt": b"a"}
    assert members_of(tmp_path / "holdfast-1.0-py3-none-any.whl") == {"holdfast/a.txt": b"a"}
