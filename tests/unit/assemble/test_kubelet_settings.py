"""Limits of a node by flag and by file: what wins, and what is refused by which name."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from podling.assemble.kubelet_settings import SettingError, chosen

KIND = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def file(directory: Path, text: str, kind: str = KIND) -> Path:
    path = directory / "kubelet.yaml"
    path.write_text(kind + text)
    return path


def test_a_file_sets_what_no_flag_does(tmp_path: Path) -> None:
    told = """
evictionHard: {memory.available: 50Mi, nodefs.available: 5%}
evictionSoft: {nodefs.available: 15%}
evictionSoftGracePeriod: {nodefs.available: 1m30s}
evictionMinimumReclaim: {nodefs.available: 1Gi}
evictionMaxPodGracePeriod: 20
evictionPressureTransitionPeriod: 30s
imageGCHighThresholdPercent: 90
imageGCLowThresholdPercent: 70
containerLogMaxSize: 20Mi
containerLogMaxFiles: 3
maxPods: 30
podPidsLimit: 100
singleProcessOOMKill: true
maxParallelImagePulls: 2
"""
    flags = {"--max-pods": "40", "--image-gc-low-threshold": "60"}
    assert chosen(file(tmp_path, told), flags) == {
        "eviction_hard": {"memory.available": "50Mi", "nodefs.available": "5%"},
        "eviction_soft": {"nodefs.available": "15%"},
        "eviction_soft_grace": {"nodefs.available": timedelta(seconds=90)},
        "eviction_minimum_reclaim": {"nodefs.available": "1Gi"},
        "eviction_max_pod_grace": 20,
        "eviction_pressure_transition": timedelta(seconds=30),
        "image_gc_high": 90,
        "image_gc_low": 60,
        "log_max_bytes": 20 << 20,
        "log_max_files": 3,
        "max_pods": 40,
        "pod_pids_limit": 100,
        "single_process_oom_kill": True,
        "parallel_pulls": 2,
    }


@pytest.mark.parametrize("text", ["-1", "0"])
def test_pods_may_have_processes_without_end(text: str) -> None:
    assert chosen(None, {"--pod-max-pids": text}) == {"pod_pids_limit": None}


def test_cgroup_v1_kills_no_container_as_a_whole(tmp_path: Path) -> None:
    mounts, told = tmp_path / "mountinfo", file(tmp_path, "singleProcessOOMKill: false")
    mounts.write_text("30 1 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n")
    with pytest.raises(SettingError, match=r"^singleProcessOOMKill must not be explicitly set to false when"):
        chosen(told, {}, mounts)
    assert chosen(file(tmp_path, "singleProcessOOMKill: true"), {}, mounts)


FLAGS = [
    ({"--max-pods": "0"}, "maxPods (--max-pods): 0 must be at least 1"),
    ({"--pod-max-pids": "-2"}, "podPidsLimit (--pod-max-pids): -2 must be at least -1"),
    (
        {"--image-pull-progress-deadline": "0s"},
        "--image-pull-progress-deadline: '0s' must be a positive duration",
    ),
    (
        {"--image-gc-high-threshold": "80"},
        "imageGCLowThresholdPercent (--image-gc-low-threshold): 80 must be less than "
        "imageGCHighThresholdPercent (--image-gc-high-threshold) 80",
    ),
    (
        {"--eviction-soft": "nodefs.available<15%"},
        "evictionSoftGracePeriod (--eviction-soft-grace-period): grace period must be specified for the soft "
        "eviction threshold nodefs.available",
    ),
    ({"--eviction-hard": "disk<5%"}, "evictionHard (--eviction-hard): unknown eviction signal disk"),
]


@pytest.mark.parametrize(("flags", "why"), FLAGS)
def test_what_cannot_be_is_refused_by_both_its_names(flags: dict[str, str], why: str) -> None:
    with pytest.raises(SettingError) as error:
        chosen(None, flags)
    assert str(error.value) == why


FILES = [
    (KIND, "singleProcessOOMKill: 1", "singleProcessOOMKill: '1' is neither true nor false"),
    (KIND, "maxPods: many", "maxPods (--max-pods): 'many' is not a whole number"),
    (KIND, "cgroupDriver: systemd", "--config: cgroupDriver cannot be set in {}; these can: maxPods, "),
    (KIND, "a: [", "--config: {} cannot be read: "),
    ("", "maxPods: 5", "--config: {} is not a KubeletConfiguration of kubelet.config.k8s.io/v1beta1"),
    ("", "[]", "--config: {} is not a KubeletConfiguration of kubelet.config.k8s.io/v1beta1"),
]


@pytest.mark.parametrize(("kind", "told", "why"), FILES)
def test_what_cannot_be_in_a_file_is_refused(tmp_path: Path, kind: str, told: str, why: str) -> None:
    path = file(tmp_path, told, kind)
    with pytest.raises(SettingError) as error:
        chosen(path, {})
    assert str(error.value).startswith(why.format(path))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"--config: .*nothing\.yaml cannot be read"):
        chosen(tmp_path / "nothing.yaml", {})
