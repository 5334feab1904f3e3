"""Real processes: killed, forked, many at once, without permission."""
