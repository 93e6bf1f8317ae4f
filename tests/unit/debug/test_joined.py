"""A log and an attach that overlap are shown once, in order (R-CLI-3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.debug.joined import TerminalLog, before


@pytest.mark.parametrize(
    ("log", "attached", "shown"),
    [
        (b"", b"", b""),
        (b"one\n", b"", b"one\n"),
        (b"", b"one\n", b""),
        (b"one\n", b"one\n", b""),
        (b"one\ntwo\n", b"two\nthree\n", b"one\n"),
        (b"one\n", b"$ ", b"one\n"),
        (b"one\ntwo\n", b"two\n$ ", b"one\n"),
        (b"aab", b"aabx", b""),
        (b"abab", b"ababab", b""),
    ],
)
def test_what_came_before_the_attach(log: bytes, attached: bytes, shown: bytes) -> None:
    assert before(log, attached) == shown


@given(st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=40))
def test_all_is_shown_in_order(first: bytes, both: bytes, last: bytes) -> None:
    """Whatever they have in common: nothing of the log is lost, and nothing of the attach."""
    log, attached = first + both, both + last
    shown = before(log, attached)
    assert log.startswith(shown)
    assert attached.startswith(log[len(shown) :])


@given(st.lists(st.integers(), unique=True, max_size=30), st.data())
def test_output_whose_lines_differ_is_shown_as_it_was(lines: list[int], data: st.DataObject) -> None:
    output = b"".join(b"%d\n" % line for line in lines)
    ends = [0, *(place + 1 for place, byte in enumerate(output) if byte == ord("\n"))]
    begun = data.draw(st.sampled_from(ends))
    logged = data.draw(st.sampled_from([end for end in ends if end >= begun]))
    log, attached = output[:logged], output[begun:]
    assert before(log, attached) + attached == output


@pytest.mark.parametrize("log", [b"/ # id\r\n0\r\n/ # ", b"/ # id\n0\n/ # ", b"\n\n", b"/ # "])
def test_a_terminals_log_is_as_the_terminal_was(log: bytes) -> None:
    """In whatever pieces it comes."""
    shown = log if b"\r" in log else log.replace(b"\n", b"\r\n")
    for place in range(len(log) + 1):
        whole = TerminalLog()
        assert whole.restored(log[:place]) + whole.restored(log[place:]) == shown
