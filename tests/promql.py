"""A reader of PromQL, as far as dashboards and rules here use it: what is no expression is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

FUNCTIONS = {
    "histogram_quantile": 2,
    "increase": 1,
    "predict_linear": 2,
    "rate": 1,
    "time": 0,
    "vector": 1,
}
#: Those that look back over a range.
RANGED = {"increase", "predict_linear", "rate"}
AGGREGATIONS = {"avg", "count", "max", "min", "sum"}
#: Weakest first.
OPERATORS = ({"or"}, {"and", "unless"}, {"==", "!=", "<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"})

_TOKEN = re.compile(
    r"\s*(?:(?P<string>\"[^\"\\]*\")|(?P<range>\[\d+[smhdw]\])|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<name>[a-zA-Z_:][\w:]*)|(?P<operator>=~|!~|==|!=|<=|>=|[-+*/%<>=(){},]))"
)


@dataclass
class Read:
    """What an expression names: metrics with the labels that they are asked by."""

    metrics: dict[str, set[str]] = field(default_factory=dict)
    #: Labels that results are grouped by.
    grouped: set[str] = field(default_factory=set)


class Parser:
    """Reads one expression."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            assert found is not None, f"no PromQL at {text[at:]!r}"
            self._tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
            at = found.end()
        self._at = 0
        self.read = Read()

    def parse(self) -> Read:
        self._binary(0)
        assert self._at == len(self._tokens), f"what is {self._tokens[self._at :]} for?"
        return self.read

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _take(self, expected: str = "", kind: str = "") -> str:
        assert self._at < len(self._tokens), f"the expression ends before {expected or kind}"
        found, text = self._tokens[self._at]
        assert (not expected or text == expected) and (not kind or found == kind), f"{text!r} at {self._at}"
        self._at += 1
        return text

    def _binary(self, level: int) -> None:
        if level == len(OPERATORS):
            self._operand()
            return
        self._binary(level + 1)
        while self._peek() in OPERATORS[level]:
            self._take()
            if self._peek() == "on":
                self._take()
                self._labels()
            self._binary(level + 1)

    def _operand(self) -> None:
        if self._peek() == "(":
            self._take()
            self._binary(0)
            self._take(")")
        elif self._tokens[self._at : self._at + 1] and self._tokens[self._at][0] == "number":
            self._take()
        else:
            self._named(self._take(kind="name"))

    def _named(self, name: str) -> None:
        if name in AGGREGATIONS:
            if self._peek() == "by":
                self._take()
                self.read.grouped |= self._labels()
            self._arguments(1)
        elif name in FUNCTIONS:
            self._arguments(FUNCTIONS[name], is_ranged=name in RANGED)
        else:
            self._selector(name)

    def _arguments(self, count: int, *, is_ranged: bool = False) -> None:
        self._take("(")
        for number in range(count):
            if number:
                self._take(",")
            if is_ranged and number == 0:
                self._selector(self._take(kind="name"))
                self._take(kind="range")
            else:
                self._binary(0)
        self._take(")")

    def _labels(self) -> set[str]:
        labels: set[str] = set()
        self._take("(")
        while self._peek() != ")":
            labels.add(self._take(kind="name"))
            if self._peek() == ",":
                self._take()
        self._take(")")
        return labels

    def _selector(self, name: str) -> None:
        labels = self.read.metrics.setdefault(name, set())
        if self._peek() != "{":
            return
        self._take()
        while self._peek() != "}":
            labels.add(self._take(kind="name"))
            assert self._take() in ("=", "!=", "=~", "!~")
            self._take(kind="string")
            if self._peek() == ",":
                self._take()
        self._take("}")


def read(expression: str) -> Read:
    """Read an expression; Grafana's own variable stands for five minutes."""
    return Parser(expression.replace("$__rate_interval", "5m")).parse()
