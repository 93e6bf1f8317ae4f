"""Where what a container printed before an attach meets what it prints after: one output stream, from the log
until the runtime's stream is known to be at the same place. Pure.

The log has everything but the line that is being written; the runtime has everything since it was asked,
and nobody says where in the log that was. So the log speaks first. Once both have been quiet for a moment,
and the lines heard from the runtime are the last lines of the log, the runtime's stream takes over with what
it has heard of the unfinished line. Nothing is left out and nothing said twice, however the two raced.
"""

from __future__ import annotations

KEPT = 64 * 1024
"""Bytes of either end that are compared."""


class OutputJoint:
    """`live` once the runtime has taken over. Each method gives what to show now.

    A terminal is taken over as soon as both are quiet. Without one, the runtime takes over at the end of a
    line only: the beginning of a line printed before the attach comes with the rest of it, from the log.
    """

    def __init__(self, *, terminal: bool) -> None:
        self.live = False
        self._terminal = terminal
        self._logged = b""
        self._heard = b""
        self._early = b""

    def logged(self, content: bytes) -> bytes:
        """The log's next content, with its line end unless more of the line follows."""
        if self.live:
            return b""
        self._logged = (self._logged + content)[-KEPT:]
        if self._terminal:
            content = _carried(content)
        early, self._early = self._early, b""
        return content.removeprefix(early)

    def heard(self, data: bytes) -> bytes:
        if self.live:
            return data
        self._heard = (self._heard + data)[-KEPT:]
        return b""

    def quiet(self) -> bytes:
        """Neither side has said anything for a moment."""
        lines, line_end, rest = self._heard.rpartition(b"\n")
        between_lines = not self._logged or self._logged.endswith(b"\n")
        if self.live or not between_lines or not _plain(self._logged).endswith(_plain(lines + line_end)):
            return b""
        self.live = bool(line_end) or self._terminal
        shown, self._early = rest.removeprefix(self._early), rest
        return shown


def _plain(lines: bytes) -> bytes:
    """Line ends as runtimes log them: without the carriage return a terminal put before."""
    return lines.replace(b"\r\n", b"\n")


def _carried(content: bytes) -> bytes:
    return _plain(content).replace(b"\n", b"\r\n")
