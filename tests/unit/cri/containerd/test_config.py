"""What containerd is told."""

from __future__ import annotations

import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from podling.cri.containerd.config import ContainerdSettings, HostFacts, render_config, render_hosts

_CRI = "io.containerd.grpc.v1.cri"


def _settings(**changes: Any) -> ContainerdSettings:
    base = Path("/var/lib/podling")
    fields: dict[str, Any] = {
        "root": base / "containerd",
        "state": Path("/run/podling"),
        "log": base / "containerd.log",
        "sandbox_image": "podling.local/pause:1",
        "cni_conf_dir": base / "cni",
    }
    return ContainerdSettings(**{**fields, **changes})


def _config(settings: ContainerdSettings | None = None, host: HostFacts | None = None) -> dict[str, Any]:
    return tomllib.loads(render_config(settings or _settings(), host or HostFacts()))


def test_everything_lies_in_its_own_directories() -> None:
    config = _config()
    cri = config["plugins"][_CRI]
    assert (config["version"], config["root"], config["state"]) == (
        2,
        "/var/lib/podling/containerd",
        "/run/podling",
    )
    assert config["grpc"]["address"] == "/run/podling/containerd.sock"
    assert config["ttrpc"]["address"] == "/run/podling/containerd.sock.ttrpc"
    assert cri["netns_mounts_under_state_dir"] is True
    assert cri["containerd"]["runtimes"]["runc"]["options"]["Root"] == "/run/podling/runc"
    assert cri["registry"]["config_path"] == "/run/podling/certs.d"
    assert cri["cni"] == {"bin_dir": "/usr/lib/cni", "conf_dir": "/var/lib/podling/cni"}
    assert cri["sandbox_image"] == "podling.local/pause:1"


def test_streams_are_served_to_this_machine_alone() -> None:
    cri = _config()["plugins"][_CRI]
    assert (cri["stream_server_address"], cri["stream_server_port"]) == ("127.0.0.1", "0")


def test_a_pull_is_given_up_when_the_kubelet_would() -> None:
    assert _config()["plugins"][_CRI]["image_pull_progress_timeout"] == "300s"
    patient = _config(_settings(pull_deadline=timedelta(minutes=30)))
    assert patient["plugins"][_CRI]["image_pull_progress_timeout"] == "1800s"


@pytest.mark.parametrize("restrict", [True, False])
def test_the_machine_decides_about_oom_scores_and_snapshots(restrict: bool) -> None:
    host = HostFacts(restrict_oom_score_adj=restrict, disable_cgroup=restrict, snapshotter="native")
    cri = _config(host=host)["plugins"][_CRI]
    assert (cri["restrict_oom_score_adj"], cri["disable_cgroup"]) == (restrict, restrict)
    assert cri["containerd"]["snapshotter"] == "native"


def test_paths_with_quotes_and_backslashes_survive() -> None:
    odd = Path('/var/lib/pod"ling\\x')
    assert _config(_settings(root=odd))["root"] == str(odd)


@pytest.mark.parametrize("field", ["root", "state", "log", "cni_conf_dir"])
def test_a_relative_path_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match="not an absolute path"):
        _settings(**{field: Path("here")})


def test_a_socket_path_the_kernel_would_cut_is_refused() -> None:
    longest = Path("/" + "x" * (101 - len("//containerd.sock")))
    assert len(str(_settings(state=longest).socket)) == 101
    with pytest.raises(ValueError, match="too long for a socket"):
        _settings(state=Path(f"{longest}x"))


@pytest.mark.parametrize(
    ("registry", "server"),
    [
        ("docker.io", "https://registry-1.docker.io"),
        ("quay.io", "https://quay.io"),
        ("127.0.0.1:5000", "http://127.0.0.1:5000"),
        ("localhost:5000", "http://localhost:5000"),
    ],
)
def test_mirrors_come_before_the_registry_itself(registry: str, server: str) -> None:
    hosts = tomllib.loads(render_hosts(registry, ["http://127.0.0.1:5001", "https://mirror.test"]))
    assert hosts["server"] == server
    assert list(hosts["host"]) == ["http://127.0.0.1:5001", "https://mirror.test"]
    assert hosts["host"]["https://mirror.test"]["capabilities"] == ["pull", "resolve"]
