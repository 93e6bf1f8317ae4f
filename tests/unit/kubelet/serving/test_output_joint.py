"""What a client sees where the log and the runtime's stream meet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.kubelet.serving.output_joint import OutputJoint

QUIET = ("quiet", b"")


def shown(joint: OutputJoint, *steps: tuple[str, bytes]) -> list[bytes]:
    return [joint.quiet() if source == "quiet" else getattr(joint, source)(data) for source, data in steps]


def log(data: bytes) -> tuple[str, bytes]:
    return ("logged", data)


def run(data: bytes) -> tuple[str, bytes]:
    return ("heard", data)


@pytest.mark.parametrize(
    ("terminal", "steps", "seen", "live"),
    [
        # All of it was printed before the attach.
        (False, [log(b"first\n"), log(b"last\n"), QUIET], b"first\nlast\n", False),
        (True, [log(b"first\n"), QUIET, run(b"/ # ")], b"first\r\n/ # ", True),
        # A terminal's line ends are logged without their carriage return.
        (True, [run(b"a\r\n/ # "), log(b"a\n"), QUIET], b"a\r\n/ # ", True),
        # Some before, some after: what both have is shown once.
        (False, [log(b"a\n"), run(b"b\n"), log(b"b\n"), QUIET, run(b"c\n"), log(b"c\n")], b"a\nb\nc\n", True),
        # The runtime is ahead of the log: it does not take over yet.
        (False, [run(b"a\nb\n"), log(b"a\n"), QUIET, log(b"b\n")], b"a\nb\n", False),
        # A question without a line end is shown, and again only what follows it.
        (
            False,
            [run(b"name? "), QUIET, QUIET, log(b"name? thanks\n"), run(b"thanks\n"), QUIET],
            b"name? thanks\n",
            True,
        ),
        # The line began before the attach: it is shown whole once the log has it.
        (
            False,
            [log(b"a\n"), run(b"? "), QUIET, run(b"ok\n"), log(b"name? ok\n"), QUIET],
            b"a\n? name? ok\n",
            True,
        ),
        # A line too long for one entry of the log is not cut by the runtime's.
        (False, [log(b"long"), run(b"long"), QUIET, log(b"er\n"), run(b"er\n"), QUIET], b"longer\n", True),
    ],
)
def test_where_they_meet(terminal: bool, steps: list[tuple[str, bytes]], seen: bytes, live: bool):
    """R-CLI-3."""
    joint = OutputJoint(terminal=terminal)
    assert (b"".join(shown(joint, *steps)), joint.live) == (seen, live)


@given(
    st.lists(st.sampled_from([b"a\n", b"bb\n", b"\n"])),
    st.integers(0, 20),
    st.lists(st.booleans()),
    st.data(),
)
def test_lines_are_shown_once_and_in_order_wherever_the_attach_comes(
    lines: list[bytes], attach: int, delays: list[bool], data: st.DataObject
):
    """R-CLI-3: the log is behind the runtime by any number of lines, but not when both are quiet."""
    terminal = data.draw(st.booleans())
    joint, seen, behind = OutputJoint(terminal=terminal), b"", list[bytes]()
    for number, line in enumerate(lines):
        behind.append(line)
        if number >= attach:
            seen += joint.heard(line.replace(b"\n", b"\r\n") if terminal else line)
        if number < len(delays) and delays[number]:
            continue
        seen += b"".join(joint.logged(late) for late in behind)
        behind = []
        if number >= attach:
            seen += joint.quiet()
    seen += b"".join(joint.logged(late) for late in behind) + joint.quiet()
    whole = b"".join(lines)
    assert seen == (whole.replace(b"\n", b"\r\n") if terminal else whole)
