"""What a container leaves behind for its status."""

import pytest

from podling.kubelet.pod.termination import log_tail


@pytest.mark.parametrize(
    ("log", "tail"),
    [
        ("", ""),
        ("t stdout F one\nt stderr F two\n", "one\ntwo\n"),
        ("t stdout P one\nt stdout F two\n", "onetwo\n"),
        ("no log line\nt stdout F one\n", "one\n"),
        ("t stdout F  spaces  kept\n", " spaces  kept\n"),
    ],
)
def test_the_end_of_a_log_without_its_prefixes(log: str, tail: str) -> None:
    assert log_tail(log) == tail


def test_only_so_many_lines_and_bytes() -> None:
    lines = log_tail("".join(f"t stdout F {n}\n" for n in range(200)))
    assert lines.split() == [str(n) for n in range(120, 200)]
    assert len(log_tail("".join(f"t stdout F {'é' * 100}\n" for n in range(80))).encode()) <= 2048
