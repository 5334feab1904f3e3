"""The documentation as a whole: links lead somewhere, the reference is complete, what is shown can be typed.

Reads the Markdown alone. `make docs` builds the site and looks at what was built, with tests/built_site.py.
"""

from __future__ import annotations

import inspect
import re
import shlex
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

import holdfast
from holdfast.application.rooms import Rooms
from holdfast.cli.shared_options import root_options
from tests.built_site import dead_links as dead_links_of_a_site
from tests.built_site import fetched_elsewhere, missing_names
from tests.cli.conftest import COMMANDS, load
from tests.transcripts import NOT_RUN

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: It has no stubs.
yaml: Any = import_module("yaml")
SITE: Mapping[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}
READ_IN_A_CHECKOUT = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
#: Where the site takes files from that pages link to outside of docs/; see the Makefile.
CARRIED = ("src/holdfast/schemas/",)
FENCED = re.compile(
    r"^(?P<before>[^\n]*)\n*^``` ?(?P<kind>[^\n]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
INCLUDE = re.compile(r'^--8<-- "([^"]+)"$', re.MULTILINE)
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?)\s*#*$", re.MULTILINE)
#: Pages whose files and commands tests/test_transcripts.py follows.
FOLLOWED = ("docs/auditor.md", "docs/tutorial.md", "docs/writing_a_store.md")


def without_code(text: str) -> str:
    """Take out what only looks like Markdown."""
    return re.sub(r"`[^`\n]*`", "code", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))


def slug(heading: str) -> str:
    """Name a heading as the site does."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    ascii_only = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())


def anchors(text: str) -> set[str]:
    headings = HEADING.findall(re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))
    named = {slug(heading) for heading in headings}
    return named | {f"holdfast.{name}" for name in re.findall(r"^::: holdfast\.(\S+)$", text, re.MULTILINE)}


def links(text: str) -> Iterator[str]:
    return (url for url in LINK.findall(without_code(text)) if not re.match(r"[a-z]+:", url))


def dead_links(root: Path, pages: Mapping[str, str]) -> list[str]:
    """Name links of pages that lead nowhere, or out of the documentation to where the site cannot follow."""
    found = []
    for name, text in pages.items():
        for url in links(text):
            place, _, anchor = url.partition("#")
            target = ((root / name).parent / place).resolve() if place else root / name
            if not _leads_somewhere(root, name, target, anchor):
                found.append(f"{name}: {url}")
    return found


def _leads_somewhere(root: Path, name: str, target: Path, anchor: str) -> bool:
    if not target.exists() or (name.startswith("docs/") and not _is_carried(root, target)):
        return False
    return not anchor or target.suffix != ".md" or anchor in anchors(target.read_text(encoding="utf-8"))


def _is_carried(root: Path, target: Path) -> bool:
    if not target.is_relative_to(root):
        return False
    return target.relative_to(root).as_posix().startswith(("docs/", *CARRIED))


def test_no_link_between_pages_is_dead() -> None:
    others = {name: (ROOT / name).read_text("utf-8") for name in READ_IN_A_CHECKOUT if (ROOT / name).exists()}
    assert sum(1 for text in PAGES.values() for _ in links(text)) > 300
    assert dead_links(ROOT, {**PAGES, **others}) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "secret.md").write_text("# Secret\n")
    page = "# One `two`, three\n\n```\n[shown](only.md)\n```\n`[so](is-this.md)`\n"
    (tmp_path / "docs" / "page.md").write_text(page)
    right = "[a](page.md) [b](page.md#one-two-three) [c](#here) [d](https://example.com/x)\n\n## Here\n"
    for text, dead in (
        (right, []),
        ("[a](gone.md)", ["gone.md"]),
        ("[a](page.md#gone)", ["page.md#gone"]),
        ("[a](../secret.md)", ["../secret.md"]),
        ("[`a`](gone.md#x)", ["gone.md#x"]),
    ):
        (tmp_path / "docs" / "index.md").write_text(text)
        pages = {"docs/index.md": text, "docs/page.md": page}
        assert dead_links(tmp_path, pages) == [f"docs/index.md: {url}" for url in dead]


def navigation(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            if isinstance(value, list):
                yield from navigation(value)
            else:
                yield f"docs/{value}"


def test_every_page_is_in_the_navigation_or_one_link_away() -> None:
    listed = list(navigation(SITE["nav"]))
    assert sorted(listed) == sorted(set(listed))
    assert [name for name in listed if name not in PAGES] == []
    near = {
        (ROOT / name).parent.joinpath(url.partition("#")[0]).resolve().relative_to(ROOT).as_posix()
        for name in listed
        for url in links(PAGES[name])
    }
    assert [name for name in PAGES if name not in {*listed, *near}] == []


def test_the_site_asks_for_nothing_from_elsewhere() -> None:
    assert SITE["theme"]["font"] is False
    # It would load a script from another host, for the search of pages that are opened as files.
    assert "offline" not in {
        name for entry in SITE["plugins"] for name in (entry if isinstance(entry, dict) else [entry])
    }
    own = [*SITE["extra_css"], SITE["theme"]["logo"], SITE["theme"]["favicon"]]
    assert [name for name in own if not (DOCS / name).is_file()] == []
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)|<img[^>]+src=\"([^\"]+)", "".join(PAGES.values()))
    assert pictures and [url for pair in pictures for url in pair if "//" in url] == []


def test_every_public_name_is_in_the_reference_once() -> None:
    pages = "".join(text for name, text in PAGES.items() if name.startswith("docs/reference/api/"))
    named = re.findall(r"^::: holdfast\.(\w+)$", pages, re.MULTILINE)
    assert sorted(named) == sorted(name for name in holdfast.__all__ if name != "__version__")
    assert "`holdfast.__version__`" in pages


def test_every_room_of_the_service_is_in_the_reference() -> None:
    page = PAGES["docs/reference/api/rooms.md"]
    names = [name for name, room in vars(Rooms).items() if isinstance(room, property)]
    with holdfast.open("memory:") as service:
        kinds = {name: type(getattr(service, name)) for name in names}
    rows = re.findall(r"^\| \[`service\.(\w+)`\]\(#(\S+)\)", page, re.MULTILINE)
    assert dict(rows) == {name: f"{kind.__module__}.{kind.__qualname__}" for name, kind in kinds.items()}
    assert re.findall(r"^::: (\S+)$", page, re.MULTILINE) == [place for _, place in rows]


@pytest.mark.parametrize("name", [name for name in holdfast.__all__ if name != "__version__"])
def test_every_public_name_has_something_to_show(name: str) -> None:
    thing = getattr(holdfast, name)
    assert inspect.getdoc(thing)
    assert inspect.signature(thing) is not None


def test_help_of_every_command_is_in_the_reference_once() -> None:
    page = PAGES["docs/reference/cli.md"]
    blocks = re.findall(
        r'^## (holdfast[^\n]*)\n\n```text\n--8<-- "tests/cli/help/(\S+)\.txt"\n```$', page, re.MULTILINE
    )
    wanted = {f"holdfast {name}": name.replace(" ", "_") for name in COMMANDS} | {"holdfast": "holdfast"}
    assert dict(blocks) == wanted and len(blocks) == len(wanted) == len(INCLUDE.findall(page))


def test_what_is_included_is_there() -> None:
    included = {name: INCLUDE.findall(text) for name, text in PAGES.items()}
    gone = [(name, path) for name, paths in included.items() for path in paths if not (ROOT / path).is_file()]
    assert gone == []


def test_every_snippet_of_python_is_run_somewhere() -> None:
    # `python` is run by test_docs, or with its framework; `py` is a file of a page that is followed;
    # `{ .python }` is a program that is included, and tested where it is.
    not_run = [
        f"{name}: {block['body'][:40]!r}"
        for name, text in PAGES.items()
        for block in FENCED.finditer(text)
        if block["kind"] in ("py", "python3", "pycon", "{ .python }")
        and not (block["kind"] == "{ .python }" and INCLUDE.fullmatch(block["body"].strip()))
        and not (name in FOLLOWED and block["before"].startswith("<!-- file: "))
    ]
    assert not_run == []


def test_every_page_that_is_followed_has_its_test() -> None:
    tests = (ROOT / "tests" / "test_transcripts.py").read_text(encoding="utf-8")
    with_files = sorted(
        name for name, text in PAGES.items() if re.search(r"^<!-- file: \S+\.py -->$", text, re.MULTILINE)
    )
    assert set(with_files) <= set(FOLLOWED)
    assert [name for name in FOLLOWED if f'differences(page("{Path(name).stem}")' not in tests] == []


def shown_commands() -> Iterator[tuple[str, str]]:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, text in {**PAGES, "README.md": readme}.items():
        for block in FENCED.finditer(text):
            if block["kind"] == "console":
                for line in re.findall(r"^\$ ((?:.*\\\n)*.*)$", block["body"], re.MULTILINE):
                    yield name, line.replace("\\\n", " ")


def holdfast_calls(line: str) -> Iterator[list[str]]:
    """Cut the calls of `holdfast` out of what is typed into a shell."""
    if line.startswith(NOT_RUN):
        return
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    call: list[str] | None = None
    for word in words:
        if re.fullmatch(r"[|&;()<>]+", word):
            if call:
                yield call
            call = None
        elif word == "holdfast" and call is None:
            call = []
        elif call is not None:
            call.append(word)
    if call:
        yield call


@cache
def options_of(command: str) -> frozenset[str]:
    everywhere = [*root_options(), *load(command).params] if command else root_options()
    words = (option.opts + option.secondary_opts for option in everywhere if isinstance(option, click.Option))
    return frozenset({"--help", "-h", "--version", *(word for some in words for word in some)})


def cannot_be_typed(call: list[str]) -> str:
    """Say what is wrong with a call; nothing if a command of that name takes these options."""
    if call[0].startswith("-"):
        return "" if options_of("") >= {call[0].partition("=")[0]} else call[0]
    name = " ".join(call[:2]) if " ".join(call[:2]) in COMMANDS else call[0]
    if name not in COMMANDS:
        return f"there is no command {name}"
    given = {word.partition("=")[0] for word in call[1:] if re.match(r"--?[a-zA-Z]", word)}
    return ", ".join(sorted(given - options_of(name)))


def test_every_command_that_is_shown_exists_with_its_options() -> None:
    calls = [(name, call) for name, line in shown_commands() for call in holdfast_calls(line)]
    assert len(calls) > 80
    assert [(name, call, said) for name, call in calls if (said := cannot_be_typed(call))] == []


@pytest.mark.parametrize(
    "line", ["holdfast lst", "echo a | holdfast list --limt 3", "holdfast audit verfy --key k"]
)
def test_a_command_that_does_not_exist_is_found(line: str) -> None:
    assert [bool(cannot_be_typed(call)) for call in holdfast_calls(line)] == [True]


def test_the_glossary_has_each_word_once_in_order_and_linked() -> None:
    rows = re.findall(r"^\| (\S.*?) \| ", PAGES["docs/glossary.md"], re.MULTILINE)[1:]
    words = [re.fullmatch(r"\[([a-z ]+)\]\([^)]+\)", row) for row in rows if row != "---"]
    assert None not in words and len(words) > 40
    named = [word[1] for word in words if word]
    assert named == sorted(set(named))


def test_a_built_page_that_asks_elsewhere_or_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "reference" / "api").mkdir(parents=True)
    (tmp_path / "reference" / "api" / "all.html").write_text('<h2 id="holdfast.open">open</h2>')
    (tmp_path / "style.css").write_text("@import 'https://fonts.example/a.css'; a { background: url(b.png) }")
    (tmp_path / "index.html").write_text(
        '<link rel="canonical" href="https://here.example/"><link rel="stylesheet" href="style.css">'
        '<script src="//cdn.example/x.js"></script><style>b { background: url("http://c.example/c") }</style>'
        '<a href="https://out.example/">out</a> <a href="#gone">gone</a> <a href="no.html">no</a>'
        '<a href="reference/api/all.html#holdfast.open">there</a>'
    )
    assert fetched_elsewhere(tmp_path) == [
        "index.html fetches //cdn.example/x.js",
        "index.html fetches http://c.example/c",
        "style.css fetches https://fonts.example/a.css",
    ]
    assert dead_links_of_a_site(tmp_path) == ["index.html leads to #gone", "index.html leads to no.html"]
    assert "open" not in missing_names(tmp_path) and "Workflow" in missing_names(tmp_path)
