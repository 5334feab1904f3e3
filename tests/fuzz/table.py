"""All targets by their names."""

from __future__ import annotations

from tests.fuzz import (
    codec_targets,
    command_targets,
    file_targets,
    record_targets,
    request_targets,
    store_targets,
    text_targets,
    trail_targets,
)
from tests.fuzz.target import Target

_ROOMS = (
    codec_targets,
    file_targets,
    record_targets,
    store_targets,
    trail_targets,
    text_targets,
    request_targets,
    command_targets,
)
TARGETS: dict[str, Target] = {target.name: target for room in _ROOMS for target in room.TARGETS}
