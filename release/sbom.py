"""`python -m release.sbom`: what the wheel brings along, a CycloneDX file for the core and for each extra."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from release import declared
from release.archive import members_of, metadata_of
from release.bill import Wheel, bill, packages_in
from release.build import DIST, ROOT, sum_of, version
from release.changelog import source_epoch
from release.environment import Environment
from release.interpreters import HERE
from release.licences import counted, licence_problem
from release.vendored import scripts_of

OUT = DIST / "sbom"


def main() -> None:
    """Write all of them, and end with what does not go with our licence."""
    (path,) = DIST.glob("*.whl")
    wheel = Wheel(version(), sum_of(path), source_epoch(ROOT / "CHANGELOG.md"), scripts_of(members_of(path)))
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    problems = [
        problem
        for script in wheel.scripts
        for name, _, licence in script.packages
        if (problem := licence_problem(name, licence, is_core=True))
    ]
    if is_of_schema('{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{}]}'):
        sys.exit("the check against the schema is blind: it takes a component without a name")
    for extra in ["", *declared.extras(metadata_of(path))]:
        problems += written(path, wheel, extra)
    if problems:
        sys.exit("\n".join(sorted({*problems})))


def written(path: Path, wheel: Wheel, extra: str) -> list[str]:
    """Write the file of one extra; answers what is wrong with licences."""
    with tempfile.TemporaryDirectory(prefix="holdfast-sbom-") as folder:
        environment = Environment(Path(folder) / "empty")
        environment.make(sys.executable)
        environment.install(f"{path}[{extra}]" if extra else str(path))
        packages = packages_in(environment.packages(), extra, python=HERE)
    text = json.dumps(bill(wheel, extra, packages), indent=1, sort_keys=True) + "\n"
    if not is_of_schema(text):
        sys.exit(f"the bill of {extra or 'the core'} is no CycloneDX 1.6")
    name = f"holdfast-{wheel.version}{f'-{extra}' if extra else ''}.cdx.json"
    (OUT / name).write_text(text, "utf-8")
    licences = {each.name: each.licence or "unknown" for each in packages}
    print(f"{extra or 'core':18} {len(packages):4} packages: {counted(licences)}", flush=True)
    found = (licence_problem(each.name, each.licence, is_core=not extra) for each in packages)
    return [problem for problem in found if problem]


def is_of_schema(text: str) -> bool:
    """Hold a file against the published schema."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    return JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


if __name__ == "__main__":
    main()
