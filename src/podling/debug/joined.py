"""A container's output from its start, of two parts that overlap: its log, and what an attach shows."""

from __future__ import annotations


class TerminalLog:
    """Gives the lines of a terminal's log the carriage returns back that some runtimes (containerd's CRI)
    leave out of it; the first line tells whether this one does."""

    def __init__(self) -> None:
        self._is_whole: bool | None = None
        self._last = b""

    def restored(self, piece: bytes) -> bytes:
        """The next piece, as the terminal showed it."""
        if self._is_whole is None and (end := piece.find(b"\n")) >= 0:
            self._is_whole = (self._last + piece[:end]).endswith(b"\r")
        self._last = piece[-1:] or self._last
        return piece.replace(b"\n", b"\r\n") if self._is_whole is False else piece


def before(log: bytes, attached: bytes) -> bytes:
    """The part of `log` that came before `attached` began: all but the longest end of it with which
    `attached` begins. Linear (Knuth, Morris, Pratt)."""
    pattern = attached[: len(log)]
    if not pattern:
        return log
    borders = _borders(pattern)
    matched = 0
    for byte in log[-len(pattern) :]:
        while matched and (matched == len(pattern) or pattern[matched] != byte):
            matched = borders[matched - 1]
        if pattern[matched] == byte:
            matched += 1
    return log[: len(log) - matched]


def _borders(pattern: bytes) -> list[int]:
    """For each beginning of `pattern`, how long the longest is that is both its start and its end."""
    borders = [0] * len(pattern)
    matched = 0
    for place in range(1, len(pattern)):
        while matched and pattern[place] != pattern[matched]:
            matched = borders[matched - 1]
        if pattern[place] == pattern[matched]:
            matched += 1
        borders[place] = matched
    return borders
