"""What an error says: its text is made by a program of somebody, and may fail itself."""

from __future__ import annotations


def said(fault: BaseException) -> str:
    """Answer the text of an error; of one that has none to give, that."""
    try:
        return str(fault)
    except Exception as problem:
        return f"(its text failed with {type(problem).__name__})"


def shown(fault: BaseException) -> str:
    """Answer the type of an error and its text."""
    return f"{type(fault).__name__}: {said(fault)}"
