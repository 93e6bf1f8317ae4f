"""Log files as runtimes write them: CRI's format, `time stream F line`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from podling.cri.hollow_script import Script


def write_log(file: str, at: datetime, script: Script) -> None:
    """Append what a container prints, all of it at one time; full lines only."""
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    time = f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z"
    with path.open("a") as log:
        for stream, lines in (("stdout", script.stdout), ("stderr", script.stderr)):
            log.writelines(f"{time} {stream} F {line}\n" for line in lines)
