"""A program: `podling up`, begun anew whenever it ends.

`podling_lives.py DATA_DIR PORT` says `started PID` and then `ready` on stdout for every life, the rest on
stderr. The parent never serves; it has imported everything once, so that a life costs a fork.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

import podling.assemble.cluster  # noqa: F401 - else each life would import it
from podling.assemble.up import UpOptions, run
from podling.machine.instance import Instance


def say(line: str) -> None:
    # Past any buffer: whoever kills this process must have heard what it said before.
    os.write(1, f"{line}\n".encode())


def live(options: UpOptions) -> NoReturn:
    say(f"started {os.getpid()}")
    try:
        run(options, lambda line: None, lambda: say("ready"))
    except Exception:
        traceback.print_exc()
    # Nothing of the parent's may run in the child.
    os._exit(1)


def main(data_dir: Path, port: int) -> None:
    options = UpOptions(Instance.at(data_dir), port)
    while True:
        pid = os.fork()
        if pid == 0:
            live(options)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            sys.exit("podling ended by itself")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
