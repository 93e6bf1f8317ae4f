"""Where what a container printed before an attach meets what it prints after: one output stream, from the log
and from the runtime. Pure.

The log has everything but the line that is being written; the runtime has everything since it was asked, and
nobody says where in the log that was. So the log speaks first. When both have been quiet for a moment and the
lines heard from the runtime are the last lines of the log, the two are known to be at the same place: what
has been heard of the unfinished line is shown, and a terminal goes on *live*, from the runtime. Without a
terminal the log goes on, as it has every line. A terminal whose client cannot keep up falls *behind*: the log
goes on after the last line that was shown. Nothing is left out or said twice, however the two raced.
"""

from __future__ import annotations

KEPT = 64 * 1024
"""Bytes of either end that are compared."""


class OutputJoint:
    def __init__(self, *, terminal: bool) -> None:
        self.live = False
        self._terminal = terminal
        self._logged = bytearray()
        self._logged_lines = 0
        self._heard = bytearray()
        self._heard_lines = 0
        self._shown_lines = 0
        """Lines the runtime has shown and the log has still to be read past."""
        self._early = b""
        """What is shown of a line that has not come from the log."""

    def logged(self, content: bytes, *, line_end: bool, new: bool) -> bytes:
        """The log's next content; no line end says that more of the line follows, `new` that it was written
        after the runtime had been asked. Gives what to show.
        """
        _keep(self._logged, content + b"\n" * line_end)
        self._logged_lines += line_end and new
        if self._shown_lines:
            self._shown_lines -= line_end
            return b""
        early = self._early.rstrip(b"\r")
        if early.startswith(content) and not line_end:
            self._early = early[len(content) :]
            return b""
        self._early = b""
        return content.removeprefix(early) + self._carriage(line_end)

    def _carriage(self, line_end: bool) -> bytes:
        """A line's end; a terminal's is logged without its carriage return."""
        return (b"\r\n" if self._terminal else b"\n") * line_end

    def heard(self, data: bytes) -> None:
        """The runtime's next output."""
        _keep(self._heard, data)
        self._heard_lines += data.count(b"\n")

    def quiet(self) -> bytes:
        """Neither side has said anything for a moment; may go live. Gives what to show."""
        lines, line_end, rest = bytes(self._heard[-KEPT:]).rpartition(b"\n")
        if self.live or not self._together(lines + line_end):
            return b""
        if not line_end and not (self._terminal and len(rest) < KEPT):
            # Where this line began is not known: it comes whole, from the log.
            return b""
        self.live = self._terminal
        shown, self._early = rest.removeprefix(self._early), rest
        return shown

    def _together(self, lines: bytes) -> bool:
        between_lines = not self._logged or self._logged.endswith(b"\n")
        caught_up = not self._shown_lines and self._logged_lines >= self._heard_lines
        return between_lines and caught_up and self._logged.endswith(lines.replace(b"\r\n", b"\n"))

    def showed(self, data: bytes) -> None:
        """While live: this has reached the client."""
        self._shown_lines += data.count(b"\n")
        _, line_end, rest = data.rpartition(b"\n")
        self._early = rest if line_end else self._early + rest

    def behind(self) -> None:
        """What was heard while live and not `showed` is lost here: it will come from the log."""
        self.live = False


def _keep(end: bytearray, data: bytes) -> None:
    """Adds `data` to what is compared; what is too old for it goes now and then."""
    end += data
    if len(end) > 4 * KEPT:
        del end[:-KEPT]
