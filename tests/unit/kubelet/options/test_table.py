"""The rows agree with `KubeletConfig`, and what they write can be read again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from podling.kubelet.config import KubeletConfig
from podling.kubelet.options.table import ALONE, DEFAULTS, FACTS, LIMITS, OPTIONS, Option, configuration
from podling.model.quantity import Quantity

ROWS = (*FACTS, *ALONE, *OPTIONS)
CONFIG = KubeletConfig("n", Path("/"), Path("/"))

each_option = pytest.mark.parametrize("option", (*ALONE, *OPTIONS), ids=lambda option: option.attribute)


def test_no_two_rows_share_a_name() -> None:
    for given in (
        [row.attribute for row in ROWS],
        [row.field for row in ROWS if row.field],
        [option.flag for option in (*ALONE, *OPTIONS) if option.flag],
    ):
        assert len(given) == len(set(given))


def test_every_row_is_an_attribute_of_the_kubelets_configuration() -> None:
    assert {row.attribute for row in ROWS} <= DEFAULTS.keys()


def test_a_limit_is_set_by_a_flag_or_by_a_file() -> None:
    assert all(option.flag or option.field for option in LIMITS)


@each_option
def test_a_default_that_is_shown_is_the_kubelets_and_what_the_flag_takes(option: Option) -> None:
    if option.default:
        assert option.read(option.default) == DEFAULTS[option.attribute] == getattr(CONFIG, option.attribute)
    else:
        assert not DEFAULTS[option.attribute]


SET: dict[str, Any] = {
    "max_pods": 7,
    "pod_pids_limit": 100,
    "single_process_oom_kill": True,
    "parallel_pulls": 2,
    "image_gc_high": 90,
    "image_gc_low": 70,
    "log_max_bytes": 20 << 20,
    "log_max_files": 3,
    "eviction_hard": {"memory.available": "50Mi"},
    "eviction_soft": {"nodefs.available": "15%"},
    "eviction_soft_grace": {"nodefs.available": timedelta(seconds=90)},
    "eviction_max_pod_grace": 20,
    "eviction_minimum_reclaim": {"nodefs.available": "1Gi"},
    "eviction_pressure_transition": timedelta(milliseconds=1500),
}


def test_what_is_shown_is_what_a_file_sets() -> None:
    shown = configuration(KubeletConfig("n", Path("/"), Path("/"), **SET))
    in_file = [option for option in LIMITS if option.field]
    assert {option.attribute: option.read(shown[option.field]) for option in in_file} == SET


def test_values_are_shown_as_go_writes_them() -> None:
    shown = configuration(
        KubeletConfig(
            "n",
            Path("/"),
            Path("/"),
            cluster_dns=("10.0.0.10",),
            system_reserved={"cpu": Quantity("500m")},
            allowed_unsafe_sysctls=("net.*",),
            eviction_soft_grace={"nodefs.available": timedelta(seconds=90)},
        )
    )
    assert shown == {
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "address": "127.0.0.1",
        "port": 10250,
        "maxPods": 110,
        "podPidsLimit": -1,
        "cgroupRoot": "/kubepods",
        "cgroupDriver": "cgroupfs",
        "clusterDNS": ["10.0.0.10"],
        "clusterDomain": "cluster.local",
        "resolvConf": "/etc/resolv.conf",
        "podCIDR": "",
        "nodeStatusUpdateFrequency": "10s",
        "nodeStatusReportFrequency": "5m0s",
        "nodeLeaseDurationSeconds": 40,
        "systemReserved": {"cpu": "500m"},
        "kubeReserved": {},
        "singleProcessOOMKill": False,
        "allowedUnsafeSysctls": ["net.*"],
        "maxParallelImagePulls": None,
        "imageGCHighThresholdPercent": 85,
        "imageGCLowThresholdPercent": 80,
        "containerLogMaxSize": "10Mi",
        "containerLogMaxFiles": 5,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "10%",
            "nodefs.inodesFree": "5%",
            "imagefs.available": "15%",
            "imagefs.inodesFree": "5%",
        },
        "evictionSoft": {},
        "evictionSoftGracePeriod": {"nodefs.available": "1m30s"},
        "evictionMinimumReclaim": {},
        "evictionMaxPodGracePeriod": 0,
        "evictionPressureTransitionPeriod": "5m0s",
    }
