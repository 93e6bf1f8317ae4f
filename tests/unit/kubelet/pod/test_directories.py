"""The pod's directory: what it records survives, and all of it goes with the pod."""

from pathlib import Path

from podling.kubelet.pod.directories import PodDirectory, stored_pods


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
