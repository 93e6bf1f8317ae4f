"""Which process has a port of this machine, from /proc."""

from __future__ import annotations

import os
from contextlib import suppress
from glob import iglob
from pathlib import Path

LISTENS = {"tcp": "0A", "udp": "07"}
"""The state of a socket that waits for clients, as /proc/net has it."""
COMMAND = 120
"""Characters of a command line that are shown."""


def holder(protocol: str, port: int) -> str:
    """`process 17 (nginx -g daemon off;)`, of a port over `tcp` or `udp` at any address; `a process` if it
    cannot be told, as of another network namespace's."""
    sockets = set()
    for family in ("", "6"):
        with suppress(OSError):
            for line in Path(f"/proc/net/{protocol}{family}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[1].endswith(f":{port:04X}") and fields[3] == LISTENS[protocol]:
                    sockets.add(f"socket:[{fields[9]}]")
    for link in iglob("/proc/[0-9]*/fd/*") if sockets else ():
        with suppress(OSError):
            if os.readlink(link) in sockets:
                process = Path(link).parents[1]
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                return f"process {process.name} ({command.strip()[:COMMAND]})"
    return "a process"
