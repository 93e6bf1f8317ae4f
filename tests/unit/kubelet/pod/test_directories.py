"""The pod's directory: what it records survives, what containers leave in it is read for their status, and
all of it goes with the pod."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from podling.kubelet.pod.containers import ContainerType
from podling.kubelet.pod.directories import (
    MESSAGE_LIMIT,
    PodDirectory,
    log_tail,
    make_message_file,
    stored_pods,
    termination_message,
)
from podling.kubelet.pod.observed import ContainerState, ObservedContainer
from podling.model.types.container import Container
from podling.model.types.pod import Pod, PodSpec
from unit.kubelet.files.hostile import HOSTILE, Host


def directory(root: Path, uid: str = "u1") -> PodDirectory:
    return PodDirectory(root / "pods", root / "logs", "ns", "web", uid)


def test_completed_initialization_is_remembered_by_whoever_comes_next(tmp_path: Path) -> None:
    """R-INIT-4"""
    assert directory(tmp_path).initialized_sandboxes() == frozenset()
    directory(tmp_path).record_initialized("sandbox-1")
    directory(tmp_path).record_initialized("sandbox-2")
    assert directory(tmp_path).initialized_sandboxes() == {"sandbox-2"}
    assert [path.name for path in directory(tmp_path).path.iterdir()] == ["initialized"]


def test_a_pod_is_stored_until_its_directory_is_removed_and_its_logs_are_apart(tmp_path: Path) -> None:
    assert stored_pods(tmp_path / "pods") == []
    pod = directory(tmp_path)
    pod.create()
    pod.create()
    pod.etc_hosts.write_text("x")
    assert stored_pods(tmp_path / "pods") == ["u1"]
    assert pod.logs == tmp_path / "logs" / "ns_web_u1"

    pod.remove()
    pod.remove()
    assert stored_pods(tmp_path / "pods") == []
    assert pod.logs.is_dir()
    pod.remove_logs()
    pod.remove_logs()
    assert not pod.logs.exists()


def test_the_logs_of_an_instance_are_not_looked_for_behind_a_link(tmp_path: Path) -> None:
    """Whoever has the directory of all logs mounted may put one there."""
    pod = directory(tmp_path)
    pod.create()
    (tmp_path / "host").mkdir()
    (tmp_path / "host/0.log").touch()
    pod.container_logs("a").symlink_to(tmp_path / "host")
    pod.remove_instance("a", 0)
    pod.remove_logs()
    assert (tmp_path / "host/0.log").exists() and not pod.logs.exists()


def test_an_instance_leaves_nothing_and_takes_nothing_of_the_others(tmp_path: Path) -> None:
    """R-INIT-10"""
    pod = directory(tmp_path)
    pod.create()
    logs = pod.container_logs("a")
    logs.mkdir()
    for name in ("0.log", "0.log.20260101-000000.gz", "1.log", "10.log"):
        (logs / name).touch()
    for attempt in (0, 1):
        message = pod.termination_message("a", attempt)
        message.parent.mkdir(parents=True, exist_ok=True)
        message.touch()
    pod.remove_instance("a", 0)
    pod.remove_instance("a", 7)
    assert sorted(path.name for path in logs.iterdir()) == ["1.log", "10.log"]
    assert [path.name for path in pod.termination_message("a", 1).parent.iterdir()] == ["1"]


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


def message(of: PodDirectory) -> str:
    """Of a container that has failed."""
    container = Container(name="c", termination_message_policy="FallbackToLogsOnError")
    now = datetime(2026, 1, 2, tzinfo=UTC)
    found = ObservedContainer(
        "i", "c", ContainerType.REGULAR, "s", 0, ContainerState.EXITED, now, exit_code=1
    )
    return termination_message(Pod(spec=PodSpec(containers=[container])), found, of)


def test_of_a_long_message_the_end_is_read(tmp_path: Path) -> None:
    """As Kubernetes' kubelet does; and it is not read whole: a container writes as much as it likes."""
    of = directory(tmp_path)
    file = make_message_file(of, "c", 0)
    assert message(of) == ""
    with file.open("wb") as out:
        out.truncate(1 << 42)
        out.seek(0, os.SEEK_END)
        out.write(b"the end")
    assert message(of) == "\0" * (MESSAGE_LIMIT - 7) + "the end"


@pytest.mark.parametrize("kind", ["pipe", "link to a file of the host", "link to itself", "link to nothing"])
@pytest.mark.parametrize("is_log", [True, False])
def test_what_is_no_file_says_nothing_and_is_not_waited_for(tmp_path: Path, kind: str, is_log: bool) -> None:
    of = directory(tmp_path)
    host = Host(tmp_path / "host")
    place = of.container_logs("c") / "0.log" if is_log else make_message_file(of, "c", 0)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    HOSTILE[kind](place, host.path)
    assert message(of) == ""
