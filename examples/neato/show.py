"""What the demo says and does, on the screen and in its transcript: narration, commands, and programs in a
terminal.

Everything is shown as a user would see it who types the same. Terminal control sequences are left out: the
transcript is text, and a query for the cursor (busybox's line editor sends them) would be answered by the
terminal the demo runs in.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TextIO

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x07")
UNFINISHED = re.compile(r"\x1b(\[[0-9;?]*)?$")
ROWS, COLUMNS = 40, 160
PATIENCE = 60.0
"""Seconds anything in the demo may take."""
STILL = 0.2
"""Seconds without anything new on the screen before a person types."""


class DemoError(Exception):
    """The demo did not go as it should; the message says where and what was seen."""


class Show:
    """Prints to the screen and to the transcript. `env` is what the commands run with."""

    def __init__(self, transcript: TextIO | None, env: Mapping[str, str]) -> None:
        self._outputs = [sys.stdout] if transcript is None else [sys.stdout, transcript]
        self.env = env
        self._line = ""

    def write(self, text: str) -> None:
        """Shown line by line, each as it stands when it is complete."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            for output in self._outputs:
                output.write(f"{_as_it_stands(line)}\n")
                output.flush()

    def say(self, *lines: str) -> None:
        self.write("\n" + "".join(f"# {line}\n" for line in lines))

    def prompt(self, command: str) -> None:
        self.write(f"$ {command}\n")

    def run(self, command: str) -> str:
        """Run a shell command to its end; its output. Raises DemoError when it fails."""
        self.prompt(command)
        seen = ""
        shell = ["bash", "-o", "pipefail", "-c", command]
        with subprocess.Popen(
            shell,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                seen += line
                self.write(line)
        if process.returncode:
            raise DemoError(f"`{command}` ended with {process.returncode}")
        return seen

    def ask(self, command: str) -> str:
        """The output of a command that is not part of the show."""
        return subprocess.run(
            ["bash", "-c", command], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True
        ).stdout

    @contextmanager
    def terminal(self, command: str) -> Iterator[Terminal]:
        """A program in a terminal of its own, for as long as the block lasts; then the terminal is closed."""
        self.prompt(command)
        terminal = Terminal(command, self)
        try:
            yield terminal
        finally:
            terminal.close()
            if self._line:
                self.write("\n")


class Terminal:
    """A program with a pseudo-terminal, and the one who types at it."""

    def __init__(self, command: str, show: Show) -> None:
        self._show = show
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        # The shell gives way to the program, so that the program is the one that hears of the terminal's end.
        self._program = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            env=show.env,
            pass_fds=(slave,),
            preexec_fn=lambda: os.login_tty(slave),
        )
        os.close(slave)
        self._pending = ""
        self._seen = ""

    def type(self, line: str) -> None:
        """Type a line once the screen is still: what is typed before a prompt would be shown twice."""
        while self._readable(time.monotonic() + STILL) and self._read():
            continue
        os.write(self._master, f"{line}\r".encode())

    def press(self, key: bytes) -> None:
        os.write(self._master, key)

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until what appeared since the last wait matches. Raises DemoError."""
        deadline = time.monotonic() + PATIENCE
        while not (match := re.search(pattern, self._seen)):
            if not self._readable(deadline) or not self._read():
                raise DemoError(f"waited for {pattern!r}, saw {self._seen!r}")
        self._seen = self._seen[match.end() :]
        return match

    def wait_for_end(self) -> None:
        """Wait until the program has ended by itself, and show the rest of what it says."""
        deadline = time.monotonic() + PATIENCE
        while self._readable(deadline) and self._read():
            continue
        try:
            self._program.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise DemoError(f"still running after {PATIENCE:.0f} s, saw {self._seen!r}") from error

    def close(self) -> None:
        """Close the terminal, as one closes its window: the program is told by SIGHUP."""
        os.close(self._master)
        try:
            self._program.wait(5)
        except subprocess.TimeoutExpired:
            self._program.send_signal(signal.SIGKILL)
            self._program.wait()

    def _readable(self, deadline: float) -> bool:
        remaining = max(0.0, deadline - time.monotonic())
        return bool(select.select([self._master], [], [], remaining)[0])

    def _read(self) -> bool:
        """Take in and show what the program printed; False when it has ended."""
        data = b""
        # On Linux reading the terminal of a program that has ended is an input/output error.
        with suppress(OSError):
            data = os.read(self._master, 65536)
        text = self._pending + data.decode(errors="replace")
        unfinished = UNFINISHED.search(text)
        self._pending = unfinished.group() if unfinished else ""
        shown = CONTROL.sub("", text.removesuffix(self._pending))
        self._seen += shown.replace("\r", "")
        self._show.write(shown)
        return bool(data)


def _as_it_stands(line: str) -> str:
    """What is left on the screen of a line whose beginning was written again: prompts are, on a new size."""
    shown = ""
    for part in line.split("\r"):
        shown = part + shown[len(part) :]
    return shown.rstrip()
