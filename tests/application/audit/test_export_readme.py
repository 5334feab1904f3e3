"""The page in an export tells a stranger what to do."""

from __future__ import annotations

from holdfast.application.audit.export_readme import readme

HEAD = "example.com/log\n12\nAAAA\n\n\u2014 example.com/log BBBB\n".encode()


def test_the_page_tells_what_is_there_and_how_to_verify_it() -> None:
    whole, one = readme(HEAD, None, 12).decode(), readme(HEAD, "s-1", 3).decode()
    assert "whole audit log of 12 entries" in whole and "tile/entries/" in whole
    assert "one session of an audit log, 3 entries" in one and ".tlog-proof" in one
    for page in (whole, one):
        assert "sha256sum -c SHA256SUMS" in page and "RFC 6962" in page
        assert "python independent_verifier.py THIS-FOLDER KEY" in page and "  merkle_roots.json" in page
        assert "  example.com/log\n  12\n  AAAA\n\n  \u2014 example.com/log BBBB\n" in page


def test_a_log_that_was_never_signed_is_told_apart() -> None:
    page = readme(b"", None, 12).decode()
    assert "never signed" in page and "AS IT STANDS" not in page
