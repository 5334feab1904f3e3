"""The dashboard's files: whole, small, from here only, and sent as what they are."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path, PurePosixPath

import pytest

import holdfast
from holdfast.application.insight.runs import RunState
from holdfast.server.guard import POLICY
from holdfast.server.pages import page
from tests.server.served import application

UI = Path(str(files("holdfast.server").joinpath("ui")))
NAMES = sorted(path.relative_to(UI).as_posix() for path in UI.rglob("*") if path.is_file())
#: What browsers load; texts about licences are there for people.
LOADED = [name for name in NAMES if PurePosixPath(name).suffix in {".html", ".js", ".css", ".svg"}]
OWN_SCRIPTS = [name for name in NAMES if name.endswith(".js") and not name.startswith("vendor/")]
WEIGHT_BYTES_MAX = 150_000

#: Names of languages, which nobody ever fetches.
_NAMESPACES = frozenset(
    f"http://www.w3.org/{name}" for name in ("1998/Math/MathML", "1999/xhtml", "2000/svg", "1999/xlink")
)
_IMPORT = re.compile(r"""(?:\bfrom\s*|\bimport\s*\(?\s*|new URL\(\s*)["'](\.[^"']+)["']""")
_BARE_IMPORT = re.compile(r"""(?:^import\s|\bfrom\s+|\bimport\(\s*)["']([^."'][^"']*)["']""", re.MULTILINE)
_ELSEWHERE = re.compile(r"""(?:https?:)?//[a-z0-9][a-z0-9.-]*\.[a-z]{2,}[^\s"'`)]*""", re.IGNORECASE)
_EXPORT = re.compile(r"^export (?:default |async )*(?:function|const|let|class) (\w+)", re.MULTILINE)


def _text(name: str) -> str:
    return (UI / name).read_text(encoding="utf-8")


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE), flags=re.DOTALL)


class _Markup(HTMLParser):
    """Collects what a page has that a strict policy forbids, and what it refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.forbidden: list[str] = []
        self.links: list[str] = []
        self._tag = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag = tag
        for name, value in attrs:
            if name == "style" or name.startswith("on"):
                self.forbidden.append(f"{tag} {name}")
            if name in ("src", "href"):
                self.links.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        self._tag = ""

    def handle_data(self, data: str) -> None:
        if self._tag in ("script", "style") and data.strip():
            self.forbidden.append(f"{self._tag}: {data.strip()[:40]}")


def test_vendored_files_are_those_that_were_taken_over() -> None:
    told = json.loads(_text("vendor/VENDORED.json"))["files"]
    assert sorted(told) == [
        PurePosixPath(name).name
        for name in NAMES
        if name.startswith("vendor/") and not name.endswith((".json", ".txt"))
    ]
    for name, facts in told.items():
        assert hashlib.sha256((UI / "vendor" / name).read_bytes()).hexdigest() == facts["sha256"]


def test_every_vendored_package_has_its_licence_beside_it() -> None:
    licences = _text("vendor/LICENSES.txt")
    for facts in json.loads(_text("vendor/VENDORED.json"))["files"].values():
        for package in facts["packages"]:
            assert f"{package['name']} {package['version']} ({package['licence']})" in licences


def test_all_that_browsers_load_is_below_150_kilobytes_when_zipped() -> None:
    weights = {name: len(gzip.compress((UI / name).read_bytes(), 9, mtime=0)) for name in LOADED}
    assert sum(weights.values()) < WEIGHT_BYTES_MAX, sorted(weights.items(), key=lambda one: -one[1])[:12]


@pytest.mark.parametrize(("name", "left_out"), [("home", {"empty"}), ("runs", set())])
def test_runs_of_every_status_are_counted_and_can_be_chosen(name: str, left_out: set[str]) -> None:
    listed = re.search(r"^const STATUSES = (\[[^\]]*\]);", _text(f"pages/{name}.js"), re.MULTILINE)
    assert listed is not None
    statuses = json.loads(listed[1])
    assert len(set(statuses)) == len(statuses) and set(statuses) | left_out == set(RunState)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".html")])
def test_markup_has_no_script_and_no_style_of_its_own_and_names_files_that_are_there(name: str) -> None:
    markup = _Markup()
    markup.feed(_text(name))
    assert markup.forbidden == []
    assert [link for link in markup.links if link not in NAMES] == []


@pytest.mark.parametrize("name", LOADED)
def test_nothing_refers_to_another_server(name: str) -> None:
    found = set(_ELSEWHERE.findall(_without_comments(_text(name))))
    assert {link for link in found if link not in _NAMESPACES} == set()


@pytest.mark.parametrize("name", OWN_SCRIPTS)
def test_scripts_never_make_markup_or_code_of_text(name: str) -> None:
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML"
        r"|\beval\(|new Function\(|javascript:|setAttribute\(\s*[\"'](?:style|on)"
    )
    assert forbidden.findall(_without_comments(_text(name))) == []


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".js")])
def test_every_import_names_a_file_that_is_there(name: str) -> None:
    text = _without_comments(_text(name)) if name in OWN_SCRIPTS else ""
    folder = (UI / name).parent
    missing = [link for link in _IMPORT.findall(text) if not (folder / link).resolve().is_file()]
    assert missing == []
    assert _BARE_IMPORT.findall(text) == []


@pytest.mark.parametrize("name", OWN_SCRIPTS)
def test_every_imported_name_is_exported_there(name: str) -> None:
    text = _without_comments(_text(name))
    pairs = re.findall(r"(?:import|export)\s*\{([^}]*)\}\s*from\s*\"(\.[^\"]+)\"", text)
    for names, link in pairs:
        offered = _exported(((UI / name).parent / link).resolve())
        wanted = {one.split(" as ")[0].strip() for one in names.split(",")} - {""}
        assert wanted <= offered, (link, sorted(wanted - offered))


def _exported(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    found = set(_EXPORT.findall(text))
    for names in re.findall(r"\bexport\s*\{([^}]*)\}", text):
        found |= {one.split(" as ")[-1].strip() for one in names.split(",")}
    for link in re.findall(r"export \* from \"([^\"]+)\"", text):
        found |= _exported((path.parent / link).resolve())
    return found


def test_every_route_has_a_page_with_a_default_export() -> None:
    pages = re.findall(r'pattern: "([^"]+)", load: \(\) => import\("\./(pages/\w+\.js)"\)', _text("main.js"))
    assert {pattern for pattern, _ in pages} == {
        "/",
        "/runs",
        "/runs/:id",
        "/checkpoints/:id",
        "/diff/:from..:until",
        "/audit",
        "/audit/:index",
        "/storage",
        "/quarantine",
        "/stats",
        "/search",
        "/about",
    }
    for _, name in pages:
        assert "export default function" in _text(name), name


@pytest.mark.parametrize("name", NAMES)
def test_every_file_has_a_media_type_and_is_sent_as_it_is(name: str) -> None:
    found = page(name)
    assert found is not None
    assert found.data == (UI / name).read_bytes() == gzip.decompress(found.zipped)
    assert found.media_type.split(";")[0] in {
        "text/html",
        "text/javascript",
        "text/css",
        "image/svg+xml",
        "application/json",
        "text/plain",
    }


@pytest.mark.parametrize("name", ["", "../app.py", "/etc/passwd", "no.js", "pages", "vendor/../../app.py"])
def test_what_is_no_file_of_the_dashboard_is_not_there(name: str) -> None:
    assert page(name) is None


def test_pages_are_served_under_a_policy_that_lets_nothing_else_run(tmp_path: Path) -> None:
    with holdfast.open(str(tmp_path / "store")):
        pass
    with application(str(tmp_path / "store")) as (client, _):
        response = client.get("/ui/")
        assert response.status_code == 200
        assert response.headers["Content-Security-Policy"] == POLICY
        assert "'unsafe" not in POLICY and "default-src 'none'" in POLICY
        again = client.get("/ui/", headers={"If-None-Match": response.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert client.get("/ui/no.js").status_code == 404
        assert client.get("/", follow_redirects=False).headers["Location"] == "/ui/"


def test_asking_for_what_is_not_there_fills_no_memory() -> None:
    for number in range(1_000):
        assert page(f"none-{number}.js") is None
    assert page.cache_info().currsize <= 256
    assert page("a" * 300 + ".js") is None
