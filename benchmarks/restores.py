"""Reading back: a whole state beside `json.loads` of it; codecs; starting up."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import holdfast
from benchmarks.holdfast_store import counted
from benchmarks.measure import Row, interleaved, micros, p50
from benchmarks.states import ChangingState
from holdfast.adapters.codecs import codec
from holdfast.domain.errors import StateSizeWarning


def run(folder: Path) -> list[Row]:
    warnings.simplefilter("ignore", StateSizeWarning)
    folder.mkdir()
    return _restore(folder) + _codecs() + _start_up()


def _restore(folder: Path) -> list[Row]:
    """The latest state of 1 MB, 60 deltas after its keyframe, files read each time."""
    service, _ = counted(folder)
    changing = ChangingState("bench", 1_000_000)
    for _ in range(60):
        service.create_checkpoint("bench", changing.step())
    service.close()
    text = json.dumps(changing.state.to_fields())
    plain = folder / "state.json"
    plain.write_text(text)
    with holdfast.open(str(folder / "store"), read_only=True) as again:
        ours, loads = interleaved(
            40,
            lambda: again.restore_checkpoint("bench@latest"),
            lambda: json.loads(plain.read_text()),
        )
        if again.restore_checkpoint("bench@latest").messages != changing.state.messages:
            raise AssertionError("what was restored is another state")
    ratio = p50(ours) / p50(loads)
    told = f"p50 {micros(p50(ours))}, {ratio:.2f}x json.loads ({micros(p50(loads))})"
    return [Row("read", "restore latest, 1 MB, 60 deltas", told, "<= 3x", ratio <= 3)]


def _codecs() -> list[Row]:
    fields = ChangingState("bench", 1_000_000).state.to_fields()
    bars = {"json": 0.010, "msgpack": 0.005}
    return [_codec_row(name, fields, bars.get(name)) for name in ("json", "msgpack", "cbor")]


def _codec_row(name: str, fields: dict[str, Any], bar: float | None) -> Row:
    coder = codec(name)
    data = coder.encode(fields)
    encoding, decoding = interleaved(20, lambda: coder.encode(fields), lambda: coder.decode(data))
    told = f"encode p50 {micros(p50(encoding))}, decode {micros(p50(decoding))}"
    bar_text, held = (f"< {bar * 1e3:.0f} ms", p50(encoding) < bar) if bar else ("", None)
    return Row("read", f"serializer {name}, 1 MB", told, bar_text, held)


def _start_up() -> list[Row]:
    return [
        _start_row("import holdfast", ["-c", "import holdfast"], None),
        _start_row("holdfast --help", ["-m", "holdfast", "--help"], 0.15),
    ]


def _start_row(name: str, arguments: list[str], bar: float | None) -> Row:
    times, nothing = interleaved(15, lambda: _child(arguments), lambda: _child(["-c", "pass"]))
    told = f"p50 {micros(p50(times))} (python itself {micros(p50(nothing))})"
    bar_text, held = (f"< {bar * 1e3:.0f} ms", p50(times) < bar) if bar else ("", None)
    return Row("start", name, told, bar_text, held)


def _child(arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
