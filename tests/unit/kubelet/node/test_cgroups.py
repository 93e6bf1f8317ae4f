"""Where pods' cgroups are, and that they are found and removed in every hierarchy."""

from pathlib import Path

import pytest

from podling.kubelet.node.cgroups import Cgroups, hierarchies, pod_cgroup

V1 = """\
30 1 0:26 / {mount}/cpu rw shared:1 - cgroup cgroup rw,cpu
31 1 0:27 / {mount}/memory rw - cgroup cgroup rw,memory
32 1 0:28 / {mount}/unified rw - cgroup2 cgroup2 rw
33 1 0:29 / /somewhere/else rw - cgroup cgroup rw,pids
34 1 0:30 / {mount} rw - tmpfs tmpfs rw
"""
V2 = "30 1 0:26 / {mount} rw - cgroup2 cgroup2 rw\n"


def table(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mountinfo"
    path.write_text(text.format(mount=tmp_path))
    return path


@pytest.mark.parametrize(
    ("qos", "path"),
    [
        ("Guaranteed", "/pods/podU"),
        ("Burstable", "/pods/burstable/podU"),
        ("BestEffort", "/pods/besteffort/podU"),
    ],
)
def test_a_pod_lives_below_its_qos_class(qos: str, path: str) -> None:
    assert pod_cgroup("/pods/", qos, "U") == path


def test_every_hierarchy_of_v1_and_hybrid_counts_and_only_those_below_the_mount(tmp_path: Path) -> None:
    found = hierarchies(tmp_path, table(tmp_path, V1))
    assert found == (tmp_path / "cpu", tmp_path / "memory", tmp_path / "unified")


def test_v2_is_one_hierarchy(tmp_path: Path) -> None:
    assert hierarchies(tmp_path, table(tmp_path, V2)) == (tmp_path,)


def test_a_pod_is_found_and_removed_in_all_hierarchies_with_what_is_below_it(tmp_path: Path) -> None:
    (tmp_path / "cpu/mine/burstable/podA/container").mkdir(parents=True)
    (tmp_path / "memory/mine/podB").mkdir(parents=True)
    (tmp_path / "memory/foreign/podC").mkdir(parents=True)
    cgroups = Cgroups(tmp_path, "/mine", table(tmp_path, V1))

    assert cgroups.pods() == {"A", "B"}
    assert cgroups.remove("A") and cgroups.remove("A")
    assert cgroups.pods() == {"B"}
    assert cgroups.remove_root()
    assert not (tmp_path / "memory/mine").exists()
    assert (tmp_path / "memory/foreign/podC").is_dir()


def test_a_busy_cgroup_is_reported_and_stays(tmp_path: Path) -> None:
    busy = tmp_path / "cpu/mine/podA"
    busy.mkdir(parents=True)
    (busy / "stands-for-a-process").touch()

    assert not Cgroups(tmp_path, "/mine", table(tmp_path, V1)).remove("A")
    assert busy.is_dir()
