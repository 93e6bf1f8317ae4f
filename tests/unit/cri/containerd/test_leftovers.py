"""Telling our shims from those of other containerds."""

from __future__ import annotations

from pathlib import Path

import pytest

from podling.cri.containerd.containerd import is_shim_of, shim_sockets

_SOCKET = Path("/run/podling/containerd.sock")


@pytest.mark.parametrize(
    ("argv", "ours"),
    [
        (["/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-address", str(_SOCKET)], True),
        (["/usr/bin/containerd-shim-runc-v2", "-address", "/run/containerd/containerd.sock"], False),
        (["/usr/bin/containerd-shim-runc-v2", "-address"], False),
        (["/usr/bin/ctr", "-address", str(_SOCKET)], False),
        (["/usr/bin/containerd-shim-runc-v2", str(_SOCKET)], False),
        ([], False),
    ],
)
def test_a_shim_is_ours_by_the_socket_it_reports_to(argv: list[str], ours: bool) -> None:
    assert is_shim_of(argv, _SOCKET) is ours


def test_shims_say_where_their_sockets_are(tmp_path: Path) -> None:
    bundle = tmp_path / "io.containerd.runtime.v2.task" / "k8s.io" / "abc"
    bundle.mkdir(parents=True)
    (bundle / "address").write_text("unix:///run/containerd/s/1234\n")
    assert shim_sockets(tmp_path) == [Path("/run/containerd/s/1234")]
    assert shim_sockets(tmp_path / "none") == []
