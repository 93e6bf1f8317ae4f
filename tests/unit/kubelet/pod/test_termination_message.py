"""What a container leaves behind for its status."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.kubelet.files.hostile import HOSTILE, Host

from podling.kubelet.pod.containers import ContainerType
from podling.kubelet.pod.directories import PodDirectory
from podling.kubelet.pod.observed import ContainerState, ObservedContainer
from podling.kubelet.pod.termination_message import (
    MESSAGE_LIMIT,
    log_tail,
    make_message_file,
    termination_message,
)
from podling.model.types.container import Container
from podling.model.types.pod import Pod, PodSpec


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


@pytest.fixture
def directory(tmp_path: Path) -> PodDirectory:
    return PodDirectory(tmp_path / "pods", tmp_path / "logs", "ns", "web", "u")


def message(directory: PodDirectory) -> str:
    """Of a container that has failed."""
    container = Container(name="c", termination_message_policy="FallbackToLogsOnError")
    now = datetime(2026, 1, 2, tzinfo=UTC)
    found = ObservedContainer(
        "i", "c", ContainerType.REGULAR, "s", 0, ContainerState.EXITED, now, exit_code=1
    )
    return termination_message(Pod(spec=PodSpec(containers=[container])), found, directory)


def test_of_a_long_message_the_end_is_read(directory: PodDirectory) -> None:
    """As Kubernetes' kubelet does; and it is not read whole: a container writes as much as it likes."""
    file = make_message_file(directory, "c", 0)
    assert message(directory) == ""
    with file.open("wb") as out:
        out.truncate(1 << 42)
        out.seek(0, os.SEEK_END)
        out.write(b"the end")
    assert message(directory) == "\0" * (MESSAGE_LIMIT - 7) + "the end"


@pytest.mark.parametrize("kind", ["pipe", "link to a file of the host", "link to itself", "link to nothing"])
@pytest.mark.parametrize("is_log", [True, False])
def test_what_is_no_file_says_nothing_and_is_not_waited_for(
    directory: PodDirectory, tmp_path: Path, kind: str, is_log: bool
) -> None:
    host = Host(tmp_path / "host")
    place = directory.container_logs("c") / "0.log" if is_log else make_message_file(directory, "c", 0)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    HOSTILE[kind](place, host.path)
    assert message(directory) == ""
