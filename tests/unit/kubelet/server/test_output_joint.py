"""What a client sees where the log and the runtime's stream meet (R-CLI-3)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.kubelet.server.replay_output import OutputJoint

Step = tuple[str, bytes]
QUIET: Step = ("quiet", b"")
BEHIND: Step = ("behind", b"")


def old(data: bytes) -> Step:
    """Logged before the attach."""
    return ("old", data)


def log(data: bytes) -> Step:
    return ("log", data)


def run(data: bytes) -> Step:
    """Said by the runtime, and shown at once while live."""
    return ("run", data)


def shown(joint: OutputJoint, steps: list[Step]) -> Iterator[bytes]:
    for source, data in steps:
        if source == "quiet":
            yield joint.quiet()
        elif source == "behind":
            joint.behind()
        elif source == "run":
            joint.heard(data)
            if joint.live:
                joint.showed(data)
                yield data
        else:
            ended = data.endswith(b"\n")
            yield joint.logged(data.removesuffix(b"\n"), line_end=ended, new=source == "log")


@pytest.mark.parametrize(
    ("terminal", "steps", "seen", "live"),
    [
        # All of it was printed before the attach.
        (False, [old(b"first\n"), old(b"last\n"), QUIET], b"first\nlast\n", False),
        (True, [old(b"first\n"), QUIET, run(b"/ # ")], b"first\r\n/ # ", True),
        # A terminal's line ends are logged without their carriage return.
        (True, [run(b"a\r\n/ # "), log(b"a\n"), QUIET], b"a\r\n/ # ", True),
        # Some before, some after: what both have is shown once.
        (
            False,
            [old(b"a\n"), run(b"b\n"), log(b"b\n"), QUIET, run(b"c\n"), log(b"c\n")],
            b"a\nb\nc\n",
            False,
        ),
        (True, [old(b"a\n"), run(b"b\r\n"), log(b"b\n"), QUIET, run(b"c\r\n")], b"a\r\nb\r\nc\r\n", True),
        # The runtime is ahead of the log: it does not take over yet.
        (True, [run(b"a\r\nb\r\n"), log(b"a\n"), QUIET, log(b"b\n")], b"a\r\nb\r\n", False),
        # The log's last line is older than the one heard, though it is equal.
        (True, [old(b"y\n"), run(b"y\r\n"), QUIET, log(b"y\n"), QUIET], b"y\r\ny\r\n", True),
        # A question without a line end is shown, and again only what follows it.
        (
            False,
            [run(b"a\nname? "), log(b"a\n"), QUIET, QUIET, log(b"name? thanks\n"), run(b"thanks\n"), QUIET],
            b"a\nname? thanks\n",
            False,
        ),
        # The line began before the attach: it is shown whole once the log has it.
        (
            False,
            [old(b"a\n"), run(b"? "), QUIET, run(b"ok\n"), log(b"name? ok\n"), QUIET],
            b"a\nname? ok\n",
            False,
        ),
        # A line too long for one entry of the log is not cut by the runtime's, nor said twice.
        (True, [log(b"long"), run(b"long"), QUIET, log(b"er\n"), run(b"er\r\n"), QUIET], b"longer\r\n", True),
        (
            False,
            [run(b"a\nlong"), log(b"a\n"), QUIET, log(b"lo"), log(b"ng"), log(b"er\n")],
            b"a\nlonger\n",
            False,
        ),
        # A client that cannot keep up gets from the log what it has not been shown, and may go live again.
        (
            True,
            [
                QUIET,
                run(b"a\r\nb"),
                BEHIND,
                run(b"c\r\nd\r\n"),
                log(b"a\n"),
                log(b"bc\n"),
                log(b"d\n"),
                QUIET,
            ],
            b"a\r\nbc\r\nd\r\n",
            True,
        ),
        # ... also when it fell behind between a line's carriage return and its end.
        (True, [QUIET, run(b"a\r"), BEHIND, run(b"\n"), log(b"a\n"), QUIET], b"a\r\r\n", True),
    ],
)
def test_where_they_meet(terminal: bool, steps: list[Step], seen: bytes, live: bool) -> None:
    joint = OutputJoint(terminal=terminal)
    assert (b"".join(shown(joint, steps)), joint.live) == (seen, live)


LINES = st.lists(st.sampled_from([b"a\n", b"bb\n", b"\n"]), max_size=30)


@given(LINES, st.integers(0, 20), st.booleans(), st.data())
def test_lines_are_shown_once_and_in_order_wherever_the_attach_comes(
    lines: list[bytes], attach: int, terminal: bool, data: st.DataObject
) -> None:
    """The log is behind the runtime by any number of lines, after the attach only by new ones; a client may
    fall behind at any moment, and what was heard then is not shown.
    """
    joint, seen = OutputJoint(terminal=terminal), b""
    unread: list[Step] = []
    for number, line in enumerate(lines):
        new = number >= attach
        unread.append(log(line) if new else old(line))
        if new:
            said = line.replace(b"\n", b"\r\n") if terminal else line
            joint.heard(said)
            if joint.live and data.draw(st.booleans(), "falls behind"):
                joint.behind()
            elif joint.live:
                joint.showed(said)
                seen += said
        if not joint.live and data.draw(st.booleans(), "log is written"):
            seen += b"".join(shown(joint, unread))
            unread = []
        attached = number >= attach - 1 and all(source == "log" for source, _ in unread)
        if attached and data.draw(st.booleans(), "is quiet"):
            seen += joint.quiet()
    joint.behind()
    seen += b"".join(shown(joint, unread))
    whole = b"".join(lines)
    assert seen == (whole.replace(b"\n", b"\r\n") if terminal else whole)
