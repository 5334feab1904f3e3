"""What `holdfast stats` prints: a part for each question, numbers with their units, and a few bars."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from holdfast.application.insight.agents import AgentStats, most_failing
from holdfast.application.insight.anomalies import Anomalies
from holdfast.application.insight.growth import Forecast, Growth
from holdfast.application.insight.intervals import IntervalAdvice, Intervals
from holdfast.application.insight.paths import Paths
from holdfast.application.insight.recoveries import Recoveries
from holdfast.application.insight.risk import Risks, duration_text
from holdfast.application.insight.storage import StorageUse
from holdfast.application.insight.summary import Stats
from holdfast.cli.output import Cell, Output, counted, safe, size_text

_BRIEF_ROWS, _ROWS = 5, 50
_WIDTH = 80
_BAR_WIDTH = 20
_LEVELS = {"high": "bad", "medium": "warn", "low": "good"}
_STEPS, _PLAIN_STEPS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588", "_.-=+*#"


@dataclass(frozen=True, slots=True)
class Asked:
    """How much of it is asked for: the most important of each part, or some parts whole."""

    is_brief: bool
    by: str | None = None
    has_days: bool = False

    @property
    def rows(self) -> int:
        return _BRIEF_ROWS if self.is_brief else _ROWS


class Page:
    """Prints parts one below the other; where programs read tables, nothing but tables."""

    def __init__(self, output: Output, asked: Asked) -> None:
        self.output = output
        self.asked = asked
        self._is_first = True

    def title(self, text: str) -> None:
        """Begin a part."""
        if not self._is_first:
            self.say("")
        self._is_first = False
        self.say(self.output.bold(text))

    def say(self, text: str, indent: str = "") -> None:
        """Print a line for people, or as many as it takes."""
        if self.output.layout == "table":
            self.output.lines(wrap(text, _WIDTH, subsequent_indent=indent) or [""])

    def share(self, share: float) -> str:
        """Write a share, with a bar for people."""
        return Cell(f"{share:4.0%} {bar_text(share)}", share)

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]], right: str) -> None:
        """Print a table, and how many rows there are beyond."""
        if not rows:
            return
        shown = rows[: self.asked.rows]
        self.output.table(head, shown, right=right)
        if len(rows) > len(shown):
            self.say(self.output.faint(f"and {len(rows) - len(shown):,} more"))


def print_stats(output: Output, told: Stats, asked: Asked) -> None:
    """Print what was counted, part by part."""
    page = Page(output, asked)
    if told.risks is not None:
        _risks(page, told.risks)
    if told.storage is not None:
        _storage(page, told.storage, is_one=told.workflow_id is not None)
    if told.growth is not None:
        _growth(page, told.growth)
    if told.agents is not None:
        _agents(page, told.agents)
    if told.paths is not None:
        _paths(page, told.paths)
    if told.intervals is not None:
        _intervals(page, told.intervals)
    if told.recoveries is not None:
        _recoveries(page, told.recoveries)
    if told.anomalies is not None:
        _anomalies(page, told.anomalies)
    if told.looked_at < told.total and told.workflow_id is None and told.looked_at:
        newest = f"Journals of the newest {told.looked_at:,} of {counted(told.total, 'workflow')}"
        output.note(f"{newest}; --limit reads more.")
    for name in told.unreadable:
        output.note(
            f"warning: the journal of {safe(name)} could not be read to its end: run `holdfast doctor`"
        )


def _risks(page: Page, told: Risks) -> None:
    page.title("Risk of live runs")
    alarming = [run for run in told.runs if run.points]
    asleep = f"; {told.asleep:,} more were quiet for a month" if told.asleep else ""
    page.say(f"{counted(told.live, 'live run')}, {len(alarming):,} with something against them{asleep}")
    for run in alarming[: page.asked.rows]:
        level = page.output.paint(f"{run.level} {run.points}", _LEVELS[run.level])
        page.say(f"{level}  {safe(run.workflow_id)} ({safe(run.status)})")
        for reason in run.reasons:
            page.say(f"  {reason.points:>3}  {safe(reason.words)}", " " * 7)
    if page.output.layout != "table":
        rows = [
            (run.workflow_id, run.status, run.level, str(run.points), "; ".join(r.words for r in run.reasons))
            for run in told.runs
        ]
        page.table(("WORKFLOW", "STATUS", "LEVEL", "POINTS", "REASONS"), rows, "   r")


def _storage(page: Page, told: StorageUse, *, is_one: bool) -> None:
    page.title("Storage")
    free = f"; {size_text(told.free_bytes)} of the disk are free" if told.free_bytes is not None else ""
    held = "in the whole store" if is_one else f"in {counted(told.total, 'workflow')}"
    page.say(f"{size_text(told.bytes)} {held}{free}")
    if told.looked_at < told.total:
        page.say(f"Of the newest {counted(told.looked_at, 'workflow')}:")
    if told.dedup_ratio is not None:
        whole, stored = size_text(told.state_bytes), size_text(told.stored_bytes)
        ratio = f"{told.dedup_ratio:.1f} to 1"
        page.say(f"{counted(told.checkpoints, 'state')}: {whole} whole, {stored} stored ({ratio})")
    how = "removes by itself" if told.is_automatic else "would remove with `prune`"
    page.say(
        f"Retention (last {told.retain_count}, {told.retain_days} days) {how}: "
        f"{counted(told.reclaimable, 'checkpoint')}, {size_text(told.reclaimable_bytes)}"
    )
    if told.quarantined:
        page.say(f"Quarantine: {counted(told.quarantined, 'report')}, {size_text(told.quarantine_bytes)}")
    if page.asked.by != "workflow" and not is_one:
        _kinds(page, told)
    if page.asked.by != "kind":
        _workflows(page, told)


def _kinds(page: Page, told: StorageUse) -> None:
    largest = sorted(told.kinds.items(), key=lambda kind: -kind[1])
    total = sum(told.kinds.values()) or 1
    rows = [(name, size_text(size), page.share(size / total)) for name, size in largest if size]
    page.table(("KIND", "SIZE", "SHARE"), rows, " r")


def _workflows(page: Page, told: StorageUse) -> None:
    rows = [
        (
            one.workflow_id,
            f"{one.checkpoints:,}",
            size_text(one.stored_bytes),
            size_text(one.newest_state_bytes),
            "held" if one.is_held else size_text(one.reclaimable_bytes),
        )
        for one in told.workflows
    ]
    page.table(("WORKFLOW", "CHECKPOINTS", "STORED", "STATE", "RECLAIMABLE"), rows, " rrrr")


def _growth(page: Page, told: Growth) -> None:
    page.title("Growth")
    if told.days:
        spark = spark_text([day.bytes for day in told.days])
        made = sum(day.checkpoints for day in told.days)
        page.say(f"{told.days[0].day} {spark} {told.days[-1].day}: {counted(made, 'checkpoint')}")
    page.say(forecast_text(told))
    if told.forecast is not None and told.forecast.exceptional:
        page.say(f"Left out as exceptional: {', '.join(told.forecast.exceptional)}")
    if not told.is_whole:
        page.say(
            f"Told by the newest {told.looked_at:,} of {counted(told.total, 'workflow')}: there is more."
        )
    if page.asked.has_days:
        rows = [
            (
                day.day,
                f"{day.checkpoints:,}",
                f"{day.kept:,}",
                size_text(day.bytes),
                size_text(day.total_bytes),
            )
            for day in reversed(told.days)
        ]
        page.table(("DAY (UTC)", "MADE", "KEPT", "SIZE", "SUM"), rows, " rrrr")


def forecast_text(told: Growth) -> str:
    """Say where growth leads."""
    forecast = told.forecast
    if forecast is None:
        return f"No forecast: {told.reason}."
    if forecast.bytes_per_day <= 0:
        return "No forecast: it does not grow."
    low, high = size_text(max(forecast.low_bytes_per_day, 0)), size_text(forecast.high_bytes_per_day)
    return f"{size_text(forecast.bytes_per_day)} a day ({low} to {high}){_full_text(forecast)}"


def _full_text(forecast: Forecast) -> str:
    if forecast.days_left is None:
        return ""
    if forecast.full_on is None:
        return f"; the {forecast.what} has room for more than a hundred years"
    return f"; the {forecast.what} is full in {forecast.days_left:,.0f} days, on {forecast.full_on}"


def _agents(page: Page, told: Sequence[AgentStats]) -> None:
    page.title("Agents")
    if not told:
        page.say("No journal tells of an agent.")
        return
    # What they used may be anything, and takes its room.
    last = -1 if page.asked.is_brief else None
    head = ("AGENT", "RUNS", "ATTEMPTS", "FAILED", "RETRIES", "MEDIAN", "P95", "TOTAL", "USED")
    page.table(head[:last], [_agent_row(one)[:last] for one in told], " rrrrrrr")
    failing = most_failing(told)
    if failing:
        names = ", ".join(
            f"{safe(one.agent)} ({one.failure_rate:.0%}{_errors(one)})" for one in failing[:_BRIEF_ROWS]
        )
        page.say(f"Most failing: {names}")


def _agent_row(one: AgentStats) -> tuple[str, ...]:
    return (
        one.agent,
        f"{one.workflows:,}",
        f"{one.attempts:,}",
        f"{one.failed:,}",
        f"{one.retries:,}",
        _seconds(one.median_seconds),
        _seconds(one.p95_seconds),
        _seconds(one.total_seconds),
        " ".join(f"{name}={value:g}" for name, value in one.used.items()) or "-",
    )


def _errors(one: AgentStats) -> str:
    return f", {safe(next(iter(one.errors)))}" if one.errors else ""


def _paths(page: Page, told: Paths) -> None:
    page.title("Paths")
    if not told.paths:
        page.say("No journal tells of an agent from its beginning.")
        return
    rows = [
        (
            Cell(f"{one.share:.0%}", one.share),
            f"{one.runs:,}",
            f"{one.completed:,}",
            f"{one.failed:,}",
            way_text(one.agents),
        )
        for one in told.paths
    ]
    page.table(("SHARE", "RUNS", "COMPLETED", "FAILED", "PATH"), rows, "rrrr")
    loops = [
        (f"{one.runs:,}", f"{one.median_rounds:g}", f"{one.max_rounds:,}", way_text(one.agents))
        for one in told.loops
    ]
    page.table(("RUNS", "ROUNDS", "MOST", "LOOP"), loops, "rrr")
    if told.cut:
        page.say(f"{counted(told.cut, 'run')} left out: the beginning of the journal was not read.")


def way_text(agents: Sequence[str], limit: int = 8) -> str:
    """Write a way through agents; of a long one the beginning and the end."""
    if len(agents) <= limit:
        return " > ".join(agents)
    return " > ".join((*agents[: limit - 3], f"({len(agents) - limit + 1} more)", *agents[-2:]))


def _intervals(page: Page, told: Intervals) -> None:
    page.title("Checkpoint interval")
    if not page.asked.is_brief:
        head = ("WORKFLOW", "COUNT", "EVERY", "BEST", "COST", "FAILURES", "SPENT", "SAVED", "LOST")
        page.table(head, [_interval_row(one) for one in told.workflows], " rrrrrrrr")
    _advice(page, told.overall)


def _advice(page: Page, one: IntervalAdvice) -> None:
    every = f", one every {_seconds(one.median_seconds)}" if one.median_seconds is not None else ""
    known = "measured" if one.is_cost_measured else "assumed"
    best = _seconds(one.recommended_seconds)
    page.say(f"{counted(one.checkpoints, 'checkpoint')}{every}; {best} would be best")
    page.say(f"{one.advice[:1].upper()}{one.advice[1:]}")
    between = _seconds(one.mtbf_seconds)
    page.say(
        f"One costs {_seconds(one.cost_seconds)} ({known}); a failure comes every {between} "
        f"({one.failures:,} seen)"
    )
    page.say(
        f"All took {_seconds(one.spent_seconds)}; recoveries kept {_seconds(one.saved_seconds)} of work and "
        f"lost {_seconds(one.lost_seconds)}"
    )


def _interval_row(one: IntervalAdvice) -> tuple[str, ...]:
    return (
        one.workflow_id or "-",
        f"{one.checkpoints:,}",
        _seconds(one.median_seconds),
        _seconds(one.recommended_seconds),
        Cell(f"{_seconds(one.cost_seconds)}{'' if one.is_cost_measured else '?'}", one.cost_seconds),
        f"{one.failures:,}",
        _seconds(one.spent_seconds),
        _seconds(one.saved_seconds),
        _seconds(one.lost_seconds),
    )


def _recoveries(page: Page, told: Recoveries) -> None:
    page.title("Recoveries")
    tried = counted(told.told + told.refused, "attempt")
    rate = "" if told.success_rate is None else f", {told.success_rate:.0%} successful"
    page.say(f"{tried} in the trail{rate}; {told.recovered:,} in journals, {told.crashed:,} after a crash")
    if told.recovered:
        page.say(
            f"Afterwards {told.completed:,} completed, {told.went_on:,} went on, {told.failed_again:,} "
            f"failed, {told.idle:,} did nothing; {told.fallbacks:,} from an older checkpoint"
        )
    if not page.asked.is_brief:
        rows = [
            (
                one.workflow_id,
                one.at[:19].replace("T", " "),
                one.mode,
                str(one.checkpoint or "-"),
                one.outcome,
            )
            for one in told.newest
        ]
        page.table(("WORKFLOW", "AT (UTC)", "MODE", "FROM", "OUTCOME"), rows, "   r")


def _anomalies(page: Page, told: Anomalies) -> None:
    page.title("Anomalies")
    if not told.anomalies:
        page.say(f"None among {told.compared:,} values; {told.least} of a kind are needed to compare.")
        return
    if page.output.layout != "table":
        rows = [
            (one.kind, one.workflow_id, one.place, f"{one.score:.1f}", one.reason) for one in told.anomalies
        ]
        page.table(("KIND", "WORKFLOW", "PLACE", "SCORE", "REASON"), rows, "   r")
        return
    for one in told.anomalies[: page.asked.rows]:
        page.say(f"{one.kind}  {safe(one.place)} in {safe(one.workflow_id)}")
        page.say(f"  {safe(one.reason)}", "  ")
    more = len(told.anomalies) + told.left_off - page.asked.rows
    if more > 0:
        page.say(page.output.faint(f"and {more:,} more"))


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else Cell(duration_text(seconds), seconds)


def bar_text(share: float) -> str:
    """Draw a share as a bar; the number beside it says the same."""
    return "#" * round(share * _BAR_WIDTH)


def spark_text(values: Sequence[float], limit: int = 40) -> str:
    """Draw values as a line of small columns, the newest ones where there are too many."""
    shown = values[-limit:]
    highest = max(shown, default=0)
    steps = _STEPS if _can_show(_STEPS) else _PLAIN_STEPS
    last = len(steps) - 1
    return "".join(steps[round(value / highest * last) if highest else 0] for value in shown)


def _can_show(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
