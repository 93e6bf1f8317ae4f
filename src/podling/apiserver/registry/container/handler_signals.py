"""The signals a container may ask to be stopped with: those of its pod's operating system."""

from __future__ import annotations

from collections.abc import Mapping

# fmt: off
_NAMED = (
    "ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "IOT", "KILL", "PIPE",
    "POLL", "PROF", "PWR", "QUIT", "SEGV", "STKFLT", "STOP", "SYS", "TERM", "TRAP", "TSTP", "TTIN", "TTOU",
    "URG", "USR1", "USR2", "VTALRM", "WINCH", "XCPU", "XFSZ", "RTMIN", "RTMAX",
)
# fmt: on
_REAL_TIME = [f"RTMIN+{i}" for i in range(1, 16)] + [f"RTMAX-{i}" for i in range(1, 15)]

STOP_SIGNALS: Mapping[str, frozenset[str]] = {
    "linux": frozenset(f"SIG{name}" for name in (*_NAMED, *_REAL_TIME)),
    "windows": frozenset(("SIGKILL", "SIGTERM")),
}
