from __future__ import annotations

import re

from holdfast.application.audit.audit_style import STYLE


def test_the_style_loads_nothing():
    assert not re.search(r"url\(|@import|expression|https?:", STYLE)


def test_the_style_cannot_end_its_element():
    assert "<" not in STYLE


def test_braces_are_balanced():
    assert STYLE.count("{") == STYLE.count("}")


def test_there_are_colours_for_light_dark_and_paper():
    names = set(re.findall(r"var\((--[a-z-]+)\)", STYLE))
    for start in (":root", "@media (prefers-color-scheme: dark)", "@media print"):
        block = STYLE[STYLE.index(start) :]
        assert names <= set(re.findall(r"(--[a-z-]+):", block[: block.index("}")]))
    assert "size: A4" in STYLE
