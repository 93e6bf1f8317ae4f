"""R-CLI: `podling capture`, on podling and on Kubernetes' own API server and kubelet, with a stand-in for
tcpdump and with the real one.
"""

from __future__ import annotations

import shutil
import signal
import struct
import subprocess
from pathlib import Path

import pytest

from .clusters import BUSYBOX, NAMESPACE, Cluster, cluster, kubernetes_cluster

__all__ = ["cluster", "kubernetes_cluster"]

IMAGE = "podling.test/tcpdump:1"
REAL = "podling.test/real-tcpdump:1"
HEADER = bytes.fromhex("d4c3b2a1 02000400 00000000 00000000 00000400 01000000")


def test_packets_come_as_they_are_written_until_it_is_ended(cluster: Cluster, tmp_path: Path) -> None:
    """To a file and to a pipe; nothing of them is in the container's log, and the container ends with it."""
    cluster.make_pod("talks")
    file = tmp_path / "web.pcap"
    one = cluster.run(
        "capture", "talks", "-m", IMAGE, "--count=1", "-w", str(file), "-i", "eth0", "port", "80"
    )
    assert one.returncode == 0, one.stderr
    assert file.read_bytes() == HEADER + b"packet"
    assert "arguments: -i eth0 -s 0 -U -w - -c 1 -- port 80" in one.stderr
    flags = ["--kubeconfig", str(cluster.kubeconfig), "-n", NAMESPACE]
    words = [*cluster.command()[:3], "capture", "-q", "-m", IMAGE, *flags, "talks"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.read(len(HEADER) + 60) == HEADER + b"packet" * 10
        program.send_signal(signal.SIGINT)
        rest = program.stdout.read()
        assert rest.replace(b"packet", b"") in (b"", b"p", b"pa", b"pac", b"pack", b"packe")
        assert program.wait(30) == 130
    for name in ("podling-capture", "podling-capture-2"):
        query = f'{{.status.ephemeralContainerStatuses[?(@.name=="{name}")].state.terminated.reason}}'
        cluster.kubectl("wait", f"--for=jsonpath={query}", "pod/talks", "--timeout=30s")
        assert cluster.kubectl("logs", "talks", "-c", name) == ""


def test_what_is_no_capture_is_said(cluster: Cluster, tmp_path: Path) -> None:
    cluster.make_pod("silent")
    file = str(tmp_path / "x")
    wrong = cluster.run("capture", "silent", "-m", IMAGE, "-w", file, "wrong")
    assert (wrong.returncode, "arguments: " in wrong.stderr) == (1, True)
    none = cluster.run("capture", "silent", "-m", BUSYBOX, "-w", file)
    assert none.returncode != 0 and "tcpdump" in none.stderr
    assert cluster.run("capture", "nobody", "-w", file).returncode == 1
    refused = cluster.run("capture", "silent", "-w", f"{tmp_path}/none/x")
    assert refused.returncode == 1 and "No such file or directory" in refused.stderr


@pytest.mark.skipif(not shutil.which("tcpdump"), reason="scripts/setup.sh test installs tcpdump")
def test_the_real_tcpdump_writes_what_passes(cluster: Cluster, tmp_path: Path) -> None:
    """Whole packets of the pod's own network, those that the filter lets through, in a file that a reader of
    pcap reads."""
    serve = "mkdir /w; echo sesame > /w/x; httpd -p 8080 -h /w"
    said = f"{serve}; while wget -qO- localhost:8080/x; do sleep 0.1; done"
    container = {"name": "app", "image": BUSYBOX, "command": ["sh", "-c", said]}
    cluster.make_pod("busy", containers=[container])
    file = tmp_path / "busy.pcap"
    words = ["-m", REAL, "-i", "lo", "--count", "40", "-w", str(file), "tcp", "dst", "port", "8080"]
    done = cluster.run("capture", "busy", *words)
    assert done.returncode == 0, done.stderr
    assert "listening on lo" in done.stderr and "40 packets captured" in done.stderr
    written = file.read_bytes()
    at, packets = 24, list[bytes]()
    while at < len(written):
        _, _, length, whole = struct.unpack_from("<4I", written, at)
        assert length == whole
        packets.append(written[at + 16 : at + 16 + length])
        at += 16 + length
    assert len(packets) == 40
    assert any(b"GET /x HTTP/1.1" in packet for packet in packets)
    # Of answers, the filter lets none through.
    assert not any(b"sesame" in packet for packet in packets)
    read = subprocess.run(["tcpdump", "-nr", str(file)], capture_output=True, text=True, check=True)
    assert len(read.stdout.splitlines()) == 40
    wrong = cluster.run("capture", "busy", "-m", REAL, "-w", str(file), "no", "such", "filter")
    assert wrong.returncode == 1 and "syntax error" in wrong.stderr, wrong.stderr
