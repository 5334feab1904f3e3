"""When a complete state is worth writing again.

Restoring reads the keyframe and the deltas after it, so their sum is bounded by the size of the state.
A small delta still costs a seek and a parse: it counts as at least 2 KB.
"""

from __future__ import annotations

MIN_DELTA_WEIGHT_BYTES = 2 * 1024
SLACK_BYTES = 64 * 1024
CHAIN_FACTOR = 2
GROWTH_FACTOR = 8


def delta_weight(length: int) -> int:
    """Weigh one delta of so many bytes."""
    return max(length, MIN_DELTA_WEIGHT_BYTES)


def needs_keyframe(keyframe_bytes: int, delta_bytes: int, state_bytes: int) -> bool:
    """Decide whether the state now deserves a keyframe.

    Args:
        keyframe_bytes: size of the state at the last keyframe, packed as `state_bytes` is: the stored
            length would mix compressed with uncompressed sizes. 0 if there is no keyframe.
        delta_bytes: sum of the `delta_weight` of every delta since.
        state_bytes: size of the state now, packed.
    """
    too_long = keyframe_bytes + delta_bytes > CHAIN_FACTOR * state_bytes + SLACK_BYTES
    outgrown = state_bytes >= GROWTH_FACTOR * keyframe_bytes
    return too_long or outgrown
