"""The lines of a log, each once, whatever connections are lost between them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.debug import log_lines
from podling.debug.log_lines import Lines, Part

TIMES = [f"2026-01-02T03:04:{second:02}.{nano:09}Z" for second in (5, 6, 7) for nano in (0, 1, 999_999_999)]
LINE = st.tuples(
    st.sampled_from(TIMES), st.sampled_from([b"", b"a", b"a b", b"\r", b"x" * 400, b"long " * 5])
)


def served(log: list[tuple[str, bytes]], since: str) -> bytes:
    """What a kubelet answers: the lines from that second on."""
    return b"".join(
        f"{time} ".encode() + text + b"\n" for time, text in log if time[:19] >= since.rstrip("Z")[:19]
    )


def shown(parts: list[Part]) -> bytes:
    return b"".join(part.text for part in parts)


@given(
    st.lists(LINE).map(lambda lines: sorted(lines, key=lambda line: line[0])), st.lists(st.integers(0, 900))
)
def test_each_line_comes_once_wherever_connections_are_cut(
    log: list[tuple[str, bytes]], cuts: list[int]
) -> None:
    lines, found = Lines(), list[Part]()
    for cut in cuts:
        lines.begin()
        found += lines.feed(served(log, lines.since)[:cut])
    lines.begin()
    answer = served(log, lines.since)
    for piece in (answer[:7], answer[7:]):
        found += lines.feed(piece)
    found += lines.end()
    assert shown(found) == b"".join(text + b"\n" for _, text in log)
    assert [part.stamp for part in found] == [time for time, _ in log]


@pytest.mark.parametrize("cuts", [[0], [60], [45, 61], [100], [131, 150], [29, 80, 220]])
def test_parts_of_a_long_line_join(monkeypatch: pytest.MonkeyPatch, cuts: list[int]) -> None:
    monkeypatch.setattr(log_lines, "LONGEST", 40)
    monkeypatch.setattr(log_lines, "TOLD", 5)
    log = [(TIMES[0], b"short"), (TIMES[1], bytes(range(65, 91)) * 6), (TIMES[1], b"last")]
    lines, found = Lines(), list[Part]()
    for cut in (*cuts, None):
        lines.begin()
        answer = served(log, lines.since)[:cut]
        for start, end in pairwise([*range(0, len(answer), 9), len(answer)]):
            found += lines.feed(answer[start:end])
    assert shown(found) == b"".join(text + b"\n" for _, text in log)
    assert [part.stamp for part in found if part.is_start] == [time for time, _ in log]


def test_a_rotated_log_goes_on_after_what_was_shown() -> None:
    log = [(TIMES[2], b"one"), (TIMES[2], b"two"), (TIMES[3], b"three"), (TIMES[4], b"four")]
    lines = Lines()
    lines.begin()
    list(lines.feed(served(log[:3], "")))
    # The file that had the first of that second is gone.
    for rotated, news in (([(TIMES[3], b"other"), log[3]], b"four\n"), (log[3:], b""), (log[2:], b"")):
        lines.begin()
        assert shown(list(lines.feed(served(rotated, lines.since)))) == news


def test_times_of_other_zones_are_asked_for_in_utc() -> None:
    lines = Lines()
    lines.begin()
    (part,) = lines.feed(b"2026-01-02T03:04:05.000000001+02:00 here\n")
    assert (part.stamp, lines.since) == ("2026-01-02T03:04:05.000000001+02:00", "2026-01-02T01:04:05Z")


def test_a_last_line_without_newline_comes_at_the_end_alone() -> None:
    lines = Lines()
    lines.begin()
    assert list(lines.feed(f"{TIMES[0]} prompt> ".encode())) == []
    lines.begin()
    assert list(lines.feed(f"{TIMES[0]} prompt> ".encode())) == []
    assert list(lines.end()) == [Part(TIMES[0], b"prompt> ")]
