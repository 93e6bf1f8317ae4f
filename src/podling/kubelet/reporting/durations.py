"""How long something took, as Go writes a duration in the messages of a kubelet."""

from __future__ import annotations

from datetime import timedelta


def milliseconds_text(duration: timedelta) -> str:
    """Cut to milliseconds: `0s`, `12ms`, `1.5s`, `1m2.003s`, `1h0m0s`."""
    total = duration // timedelta(milliseconds=1)
    if total < 1000:
        return f"{total}ms" if total else "0s"
    minutes, rest = divmod(total, 60_000)
    seconds = f"{rest // 1000}.{rest % 1000:03d}".rstrip("0").rstrip(".") + "s"
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds
