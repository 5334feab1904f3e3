"""The tables: every figure of every contender, and each peer as a ratio."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.compare.figures import NOTHING, Figure, Figures, bytes_name, ms, size
from benchmarks.compare.lanes import CHAT, LANES, PAIRS, Lane, label


def page(results: dict[str, Any]) -> str:
    """Write the measured part of the comparison."""
    figures = Figures(results)
    sections = [_heading(results), ratios(figures), _not_run(figures), *_details(figures), _versions(figures)]
    return "\n\n".join(section for section in sections if section)


def ratios(figures: Figures) -> str:
    """Write each peer beside Holdfast: above 1 Holdfast takes less, below 1 (bold) the peer does."""
    constants = [int(one) for one in figures.sizes["constant"]]
    head = ["peer", "beside", *(f"commit, {bytes_name(one)}" for one in constants)]
    head += ["chat, a turn", "chat, on disk", "resume", "on disk"]
    return _table(head, (_ratio_row(figures, ours, theirs, constants) for ours, theirs in PAIRS))


def _ratio_row(figures: Figures, ours: str, theirs: str, constants: list[int]) -> list[str]:
    middle = f"constant-{_middle(constants)}"
    mark = figures.common_mark(ours, theirs) if figures.marks(theirs) and figures.marks(ours) else None
    compared = [
        (figures.commit(ours, f"constant-{one}"), figures.commit(theirs, f"constant-{one}"))
        for one in constants
    ]
    chats = [
        (figures.mark(ours, mark or 0, name), figures.mark(theirs, mark or 0, name))
        for name in ("p50_seconds", "bytes")
    ]
    ends = [
        (figures.number(ours, "resume", "seconds"), figures.number(theirs, "resume", "seconds")),
        (figures.number(ours, middle, "bytes"), figures.number(theirs, middle, "bytes")),
    ]
    after = f" at {mark:,}" if mark else ""
    told = [_ratio(*pair) for pair in compared]
    told += [_ratio(*pair) + (after if all(one.is_measured for one in pair) else "") for pair in chats]
    return [_name(theirs), _name(ours), *told, *(_ratio(*pair) for pair in ends)]


def _ratio(ours: Figure, theirs: Figure) -> str:
    if not (ours.is_measured and theirs.is_measured):
        reason = theirs.reason or ours.reason
        return reason.partition(":")[0]
    if ours.median <= 0:
        return NOTHING
    ratio = theirs.median / ours.median
    told = f"{ratio:.0f}x" if ratio >= 10 else f"{ratio:.1f}x" if ratio >= 1 else f"{ratio:.2f}x"
    return f"**{told}**" if ratio < 1 else told


def _details(figures: Figures) -> Iterable[str]:
    constants = [int(one) for one in figures.sizes["constant"]]
    middle, largest = f"constant-{_middle(constants)}", f"constant-{constants[-1]}"
    yield _lanes_table(
        "Commit, p50",
        figures,
        {_steps(figures, one): _commit(figures, f"constant-{one}") for one in constants}
        | {
            f"{bytes_name(_middle(constants))}: CPU of the process": lambda lane: figures.number(
                lane, middle, "cpu_seconds"
            ).told(ms),
            "one image in five fields": _commit(figures, "images"),
        },
    )
    yield _chat_table(figures)
    yield _lanes_table(
        f"Many writers, commits of {bytes_name(20_000)} a second",
        figures,
        {f"{one} writers": _rate(figures, f"writers-{one}") for one in figures.sizes["writers"]},
    )
    yield _lanes_table(
        "Coming back",
        figures,
        {
            "restore the newest, " + bytes_name(constants[-1]): lambda lane: figures.restore(
                lane, largest
            ).told(ms),
            f"killed at step {figures.sizes['kill_at']}: process start to the next step": lambda lane: (
                figures.number(lane, "resume", "seconds").told(ms)
            ),
            "of it importing": _part(figures, "importing_seconds"),
            "opening": _part(figures, "opening_seconds"),
            "restoring": _part(figures, "restoring_seconds"),
        },
    )
    yield _lanes_table(
        f"Looking and keeping, {_steps(figures, _middle(constants))}",
        figures,
        {
            "list 100": lambda lane: figures.call(lane, middle, "list").told(ms),
            "diff": lambda lane: figures.call(lane, middle, "diff").told(ms),
            "on disk": lambda lane: figures.number(lane, middle, "bytes").told(size),
            "after retention": lambda lane: figures.number(lane, middle, "bytes_after_retention").told(size),
            "which keeps": lambda lane: figures.kept(lane, middle),
            "images, on disk": lambda lane: figures.number(lane, "images", "bytes").told(size),
        },
    )


def _chat_table(figures: Figures) -> str:
    asked = [lane.name for lane in LANES if lane.name in figures.lanes]
    mark = figures.common_mark(*asked)
    if mark is None:
        return ""
    turns, seconds = figures.sizes["turns"][-1], figures.sizes["turn_seconds"]
    title = f"A chat of {turns:,} turns, or {seconds:.0f} s of them"
    return _lanes_table(
        title,
        figures,
        {
            f"a turn, after {mark:,}": lambda lane: figures.mark(lane, mark, "p50_seconds").told(ms),
            f"on disk, after {mark:,}": lambda lane: figures.mark(lane, mark, "bytes").told(size),
            "turns reached": lambda lane: figures.number(lane, "chat", "turns").told(
                lambda one: f"{one:,.0f}"
            ),
            "a turn, at its last mark": lambda lane: _last_mark(figures, lane, "p50_seconds", ms),
            "on disk then": lambda lane: _last_mark(figures, lane, "bytes", size),
        },
        is_chat=True,
    )


def _last_mark(figures: Figures, lane: str, name: str, unit: Callable[[float], str]) -> str:
    marks = figures.marks(lane)
    return f"{figures.mark(lane, marks[-1], name).told(unit)} at {marks[-1]:,}" if marks else NOTHING


def _steps(figures: Figures, count: int) -> str:
    return f"{bytes_name(count)}, {figures.sizes['constant'][str(count)]} steps"


def _commit(figures: Figures, workload: str) -> Callable[[str], str]:
    return lambda lane: figures.commit(lane, workload).told(ms)


def _part(figures: Figures, name: str) -> Callable[[str], str]:
    """Tell a part of resuming by its median alone: the whole has the spread."""
    return lambda lane: ms(figures.number(lane, "resume", name).median)


def _rate(figures: Figures, workload: str) -> Callable[[str], str]:
    return lambda lane: figures.number(lane, workload, "per_second").told(lambda one: f"{one:,.0f}")


def _lanes_table(
    title: str, figures: Figures, columns: dict[str, Callable[[str], str]], *, is_chat: bool = False
) -> str:
    shown = [lane for lane in LANES if is_shown(lane, figures, is_chat=is_chat)]
    rows = (
        [lane.title, lane.store, lane.durability, *(told(lane.name) for told in columns.values())]
        for lane in shown
    )
    return f"### {title}\n\n" + _table(["contender", "store", "a commit is", *columns], rows)


def is_shown(lane: Lane, figures: Figures, *, is_chat: bool) -> bool:
    told = figures.lanes.get(lane.name)
    return told is not None and "not_run" not in told and (is_chat or lane.only != CHAT)


def _not_run(figures: Figures) -> str:
    missing = [
        f"- {_name(name)}: not run: {told['not_run']}"
        for name, told in figures.lanes.items()
        if "not_run" in told
    ]
    return "\n".join(missing)


def _versions(figures: Figures) -> str:
    found = {k: v for told in figures.lanes.values() for k, v in told.get("versions", {}).items()}
    return "Versions: " + ", ".join(f"{name} {version}" for name, version in sorted(found.items())) + "."


def _heading(results: dict[str, Any]) -> str:
    machine, rounds = results["machine"], results["rounds"]
    return (
        f"{machine['system']}, {machine['cores']} cores ({machine['processor']}), "
        f"Python {machine['python']}, {results['at']} UTC, "
        f"{rounds} round{'s' if rounds != 1 else ''} in {results['seconds'] / 60:.0f} minutes"
        f"{_load(results)}. Medians; in brackets the least and the most of the rounds."
    )


def _load(results: dict[str, Any]) -> str:
    load = results["machine"].get("load_before")
    return f", load {load:.1f} when it began" if load is not None else ""


def _middle(constants: list[int]) -> int:
    return constants[len(constants) // 2]


def _name(lane: str) -> str:
    return label(next(one for one in LANES if one.name == lane))


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines)
