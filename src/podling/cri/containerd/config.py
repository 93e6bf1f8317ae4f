"""The configuration files of a private containerd and of its registries, from a few settings. Pure.

The format is version 2, which containerd 1.6 and 1.7 read and 2.x migrates by itself. Only settings that
differ from the default are written. Plugins that a kubelet never needs are off, which keeps the start near
ten milliseconds and keeps containerd from making directories outside its own (`opt`, `nri`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import msgspec

# runtime.v1.linux looks as needless, but containerd 1.6 as Debian builds it serves no tasks without it.
_DISABLED_PLUGINS = (
    "io.containerd.internal.v1.opt",
    "io.containerd.internal.v1.restart",
    "io.containerd.internal.v1.tracing",
    "io.containerd.monitor.v1.cgroups",
    "io.containerd.nri.v1.nri",
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.blockfile",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.erofs",
    "io.containerd.snapshotter.v1.zfs",
    "io.containerd.tracing.processor.v1.otlp",
)

_SOCKET_PATH_LIMIT = 107


class HostFacts(msgspec.Struct, frozen=True):
    """What containerd's configuration must take into account of this machine. `detect` of `containerd.py`
    finds it out."""

    restrict_oom_score_adj: bool = False
    disable_cgroup: bool = False
    snapshotter: str = "overlayfs"


class ContainerdSettings(msgspec.Struct, frozen=True):
    """The settings of one containerd.

    `root` keeps images and container metadata; `state` keeps what ends with a reboot. Both are containerd's
    alone. Its output goes to `log`. `registries` maps a registry (`docker.io`, `127.0.0.1:5000`) to the URLs
    asked in its place, in order. containerd 1.7 and newer cancels a pull without progress for
    `pull_deadline`. Raises ValueError for a path that is not absolute or too long for a socket.
    """

    root: Path
    state: Path
    log: Path
    sandbox_image: str
    cni_conf_dir: Path
    cni_bin_dir: Path = Path("/usr/lib/cni")
    registries: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)
    pull_deadline: timedelta = timedelta(minutes=5)
    binary: str = "containerd"

    def __post_init__(self) -> None:
        for path in (self.root, self.state, self.log, self.cni_conf_dir):
            if not path.is_absolute():
                raise ValueError(f"{path} is not an absolute path")
        # The longest of its sockets is the one for the shims.
        if len(str(self.socket)) + len(".ttrpc") > _SOCKET_PATH_LIMIT:
            raise ValueError(
                f"{self.socket} is too long for a socket: at most {_SOCKET_PATH_LIMIT - 6} characters"
            )

    @property
    def socket(self) -> Path:
        return self.state / "containerd.sock"

    @property
    def config_file(self) -> Path:
        return self.state / "config.toml"

    @property
    def pid_file(self) -> Path:
        return self.state / "containerd.pid"

    @property
    def registry_dir(self) -> Path:
        return self.state / "certs.d"

    @property
    def runc_root(self) -> Path:
        return self.state / "runc"


def render_config(settings: ContainerdSettings, host: HostFacts) -> str:
    """The configuration file, as TOML."""
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    runc = f"{cri}.containerd.runtimes.runc"
    tables: dict[str, dict[str, object]] = {
        "": {
            "version": 2,
            "root": str(settings.root),
            "state": str(settings.state),
            "disabled_plugins": list(_DISABLED_PLUGINS),
        },
        "debug": {"level": "warn"},
        # Another containerd on the same root must be an error, not a wait without end.
        "timeouts": {"io.containerd.timeout.bolt.open": "3s"},
        "grpc": {"address": str(settings.socket)},
        "ttrpc": {"address": f"{settings.socket}.ttrpc"},
        cri: {
            "sandbox_image": settings.sandbox_image,
            "netns_mounts_under_state_dir": True,
            "restrict_oom_score_adj": host.restrict_oom_score_adj,
            "disable_cgroup": host.disable_cgroup,
            "stream_server_address": "127.0.0.1",
            "stream_server_port": "0",
            "image_pull_progress_timeout": f"{settings.pull_deadline.total_seconds():g}s",
        },
        f"{cri}.cni": {"bin_dir": str(settings.cni_bin_dir), "conf_dir": str(settings.cni_conf_dir)},
        f"{cri}.containerd": {"snapshotter": host.snapshotter, "default_runtime_name": "runc"},
        runc: {"runtime_type": "io.containerd.runc.v2"},
        f"{runc}.options": {"Root": str(settings.runc_root), "SystemdCgroup": False},
        f"{cri}.registry": {"config_path": str(settings.registry_dir)},
    }
    return "\n".join(_table(name, values) for name, values in tables.items())


def render_hosts(registry: str, urls: Sequence[str]) -> str:
    """The hosts.toml of one registry: ask `urls` in order, then the registry itself."""
    scheme = "http" if registry.partition(":")[0] in ("localhost", "127.0.0.1") else "https"
    server = "https://registry-1.docker.io" if registry == "docker.io" else f"{scheme}://{registry}"
    tables: dict[str, dict[str, object]] = {"": {"server": server}}
    for url in urls:
        tables[f"host.{_value(url)}"] = {"capabilities": ["pull", "resolve"]}
    return "\n".join(_table(name, values) for name, values in tables.items())


def _table(name: str, values: Mapping[str, object]) -> str:
    header = f"[{name}]\n" if name else ""
    return header + "".join(f"{_key(key)} = {_value(value)}\n" for key, value in values.items())


def _key(key: str) -> str:
    return key if "." not in key else _value(key)


def _value(value: object) -> str:
    # What JSON says of strings, numbers, booleans and lists of strings is TOML too.
    return json.dumps(value)
