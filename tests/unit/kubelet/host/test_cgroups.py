"""Where pods' cgroups are, and that they are found and removed in every hierarchy."""

from pathlib import Path

import pytest

from podling.kubelet.files.tree import make_directories
from podling.kubelet.host.cgroups import (
    CgroupLimits,
    Cgroups,
    Hierarchy,
    hierarchies,
    pod_cgroup,
    remove_tree,
)
from podling.model.quantity import Quantity
from podling.model.types.container import Container, ResourceRequirements
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod, PodSpec

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
    for name in ("cpu", "memory", "unified") if text == V1 else ():
        (tmp_path / name).mkdir(exist_ok=True)
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
    mounts = table(tmp_path, V1)
    (tmp_path / "unified/cgroup.controllers").write_text("hugetlb rdma\n")
    found = hierarchies(tmp_path, mounts)
    assert [(h.path.name, h.version, set(h.controllers)) for h in found] == [
        ("cpu", 1, {"cpu"}),
        ("memory", 1, {"memory"}),
        ("unified", 2, {"hugetlb"}),
    ]


def test_v2_is_one_hierarchy(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory hugetlb pids\n")
    limiting = frozenset({"cpu", "memory", "pids", "hugetlb"})
    assert hierarchies(tmp_path, table(tmp_path, V2)) == (Hierarchy(tmp_path, 2, limiting),)


def test_cgroups_in_each_other_are_removed_however_many_they_are(tmp_path: Path) -> None:
    make_directories(tmp_path / ("a/" * 1100))
    assert remove_tree(tmp_path / "a") and not (tmp_path / "a").exists()


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


def kernel(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Stands for the kernel, which fills every new cgroup with its files."""
    make = Path.mkdir

    def mkdir(self: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        if parents and not self.parent.exists():
            self.parent.mkdir(parents=True)
        make(self, mode, exist_ok=exist_ok)
        for name in names:
            (self / name).touch()

    monkeypatch.setattr(Path, "mkdir", mkdir)


def pod_of(uid: str, **resources: ResourceRequirements) -> Pod:
    containers = [Container(name=name, resources=given) for name, given in resources.items()]
    return Pod(metadata=ObjectMeta(uid=uid), spec=PodSpec(containers=containers))


def test_a_pods_limits_are_in_every_hierarchy_that_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel(monkeypatch, "cpu.shares", "cpu.cfs_period_us", "memory.limit_in_bytes")
    cgroups = Cgroups(tmp_path, "/mine", table(tmp_path, V1))
    cgroups.write(pod_of("A"), CgroupLimits(memory=4096))

    assert (tmp_path / "memory/mine/besteffort/podA/memory.limit_in_bytes").read_text() == "4096"
    assert (tmp_path / "cpu/mine/besteffort/podA/cpu.shares").read_text() == "2"
    assert not (tmp_path / "unified/mine").exists()


def test_a_limit_the_kernel_does_not_know_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel(monkeypatch, "cpu.shares", "cpu.cfs_period_us")
    cgroups = Cgroups(tmp_path, "/mine", table(tmp_path, V1))
    with pytest.raises(FileNotFoundError, match=r"memory\.limit_in_bytes"):
        cgroups.write(pod_of("A"), CgroupLimits(memory=4096))


def test_in_v2_every_ancestor_passes_the_controllers_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel(monkeypatch, "cgroup.subtree_control", "cpu.weight", "memory.max")
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpu\n")
    Cgroups(tmp_path, "/mine", table(tmp_path, V2)).write(pod_of("A"), CgroupLimits(memory=4096))

    written = [
        (tmp_path / part / "cgroup.subtree_control").read_text()
        for part in ("", "mine", "mine/besteffort", "mine/besteffort/podA")
    ]
    # What was enabled before is not asked for again: a file of the kernel's is not replaced by a write.
    assert [text[:12] for text in written] == ["+memory", "+cpu +memory", "+cpu +memory", ""]


def test_burstable_pods_weigh_what_they_ask_for_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel(monkeypatch, "cpu.shares", "cpu.cfs_period_us", "memory.limit_in_bytes")
    cgroups = Cgroups(tmp_path, "/mine", table(tmp_path, V1))
    cgroups.set_up(CgroupLimits(4096, memory=1 << 30))
    shares = tmp_path / "cpu/mine/burstable/cpu.shares"
    assert (tmp_path / "memory/mine/memory.limit_in_bytes").read_text() == str(1 << 30)

    seen = [shares.read_text()]
    for uid, cpu in (("A", "1"), ("B", "1500m"), ("A", "2")):
        cgroups.weigh(pod_of(uid, c=ResourceRequirements(requests={"cpu": Quantity(cpu)})))
        seen.append(shares.read_text())
    cgroups.remove("A")
    seen.append(shares.read_text())
    assert seen == ["2", "1024", "2560", "3584", "1536"]


@pytest.mark.parametrize(
    ("one_by_one", "swap", "settings"),
    [
        (False, True, {"memory.oom.group": "1", "memory.swap.max": "0"}),
        (True, True, {"memory.swap.max": "0"}),
        (False, False, {"memory.oom.group": "1"}),
    ],
)
def test_what_every_container_is_told_on_v2(
    tmp_path: Path, one_by_one: bool, swap: bool, settings: dict[str, str]
) -> None:
    (tmp_path / "cgroup.controllers").write_text("memory\n")
    (tmp_path / "mine").mkdir()
    if swap:
        (tmp_path / "mine/memory.swap.max").touch()
    cgroups = Cgroups(tmp_path, "/mine", table(tmp_path, V2))
    assert cgroups.container_settings(one_by_one=one_by_one) == settings
    assert not cgroups.limits_swap


def test_v1_tells_containers_nothing_and_may_count_swap(tmp_path: Path) -> None:
    (tmp_path / "memory/mine").mkdir(parents=True)
    cgroups = Cgroups(tmp_path, "/mine", table(tmp_path, V1))
    assert (cgroups.container_settings(one_by_one=False), cgroups.limits_swap) == ({}, False)
    (tmp_path / "memory/mine/memory.memsw.limit_in_bytes").touch()
    assert cgroups.limits_swap


def test_kills_are_counted_by_the_kernel(tmp_path: Path) -> None:
    cgroups = Cgroups(tmp_path, "/mine", table(tmp_path, V1))
    pod = pod_of("A")
    assert cgroups.oom_kills(pod, "C") is None
    path = tmp_path / "memory/mine/besteffort/podA/C"
    path.mkdir(parents=True)
    (path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    assert cgroups.oom_kills(pod, "C") == 2


def test_memory_in_use_is_the_kernels_count(tmp_path: Path) -> None:
    cgroups = Cgroups(tmp_path, "/mine", table(tmp_path, V1))
    pod = pod_of("A")
    assert cgroups.memory_usage(pod) == 0
    path = tmp_path / "memory/mine/besteffort/podA/C"
    path.mkdir(parents=True)
    (path / "memory.usage_in_bytes").write_text("7\n")
    (path.parent / "memory.usage_in_bytes").write_text("9\n")
    assert (cgroups.memory_usage(pod), cgroups.memory_usage(pod, "C")) == (9, 7)
