"""What containers of the in-memory runtime do: a script for each start of an image, told before it
happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from podling.cri.interface import RuntimeFault

TERMINATED = 143
KILLED = 137


class ExecOutcome(msgspec.Struct, frozen=True):
    """`seconds` is how long it takes."""

    exit_code: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    seconds: float = 0.0


class Script(msgspec.Struct, frozen=True):
    """One run of a container. By default it runs until it is stopped, and ends at once on TERM.

    `exit_code` is what it exits with by itself, `after` seconds (None: never); `term_code` what it exits with
    on TERM (None: it ignores TERM and has to be killed). `stdout` and `stderr` are lines it prints when it
    starts; `written_bytes` are in its writable layer. `executes` maps commands to what they do; any other is
    not found in the container. The faults are raised by the calls.
    """

    exit_code: int | None = None
    after: float = 0.0
    term_code: int | None = TERMINATED
    out_of_memory: bool = False
    stdout: Sequence[str] = ()
    stderr: Sequence[str] = ()
    written_bytes: int = 0
    executes: Mapping[tuple[str, ...], ExecOutcome] = msgspec.field(default_factory=dict)
    create_fault: RuntimeFault | None = None
    start_fault: RuntimeFault | None = None
    update_fault: RuntimeFault | None = None


class HollowImage(msgspec.Struct):
    """`runs[n]` is the script of attempt n, the last one of all that follow. `pull_faults` are raised by the
    first pulls, one each; `present` says that it need not be pulled. A pull gets on for `pull_seconds`; of
    one that is `stuck` nothing ever comes."""

    runs: Sequence[Script] = (Script(),)
    present: bool = False
    pull_faults: list[RuntimeFault] = msgspec.field(default_factory=list)
    user: int | None = None
    pull_seconds: float = 0.0
    stuck: bool = False

    def run(self, attempt: int) -> Script:
        return self.runs[min(attempt, len(self.runs) - 1)]
