"""R-SYS-2, R-SYS-8: machines become API servers of a cluster that is kept in etcd, also if a first try was
cut short; one is killed, and the others and the nodes go on; they leave.

`alpha` is the first, `beta` and `gamma` join it, and `delta` joins as a node alone. etcd, with certificates,
is at the router of their segment, and outlives them all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podling.machine.pki import Authority

from .machines import PODLING, Machine, Wire, wired
from .test_several_machines import BUSYBOX, pod

pytestmark = pytest.mark.containerd

ETCD = "10.201.1.1"
LOOKS = 400
CLIENT = Path(__file__).with_name("node_client.py")


class Servers(msgspec.Struct):
    alpha: Machine
    beta: Machine
    gamma: Machine
    delta: Machine
    stranger: Machine
    took: dict[str, float]

    def get(self, *arguments: str, at: Machine | None = None) -> Any:
        return json.loads((at or self.beta).kubectl("get", *arguments, "-o", "json").stdout)

    def addresses(self, at: Machine | None = None) -> set[str]:
        """Of the service `kubernetes`."""
        subsets = self.get("endpoints", "kubernetes", at=at)["subsets"]
        return {one["ip"] for subset in subsets for one in subset["addresses"]}

    def until(self, holds: Callable[[], bool]) -> float:
        """Seconds until it held."""
        began = time.monotonic()
        for _ in range(LOOKS):
            if holds():
                return time.monotonic() - began
        raise AssertionError("it does not come to hold")

    def command(self, *arguments: str) -> list[str]:
        """By which a machine joins, without `podling`."""
        alpha = self.alpha
        config = ("--kubeconfig", str(alpha.instance.kubeconfig))
        return alpha.podling("token", "create", *arguments, *config).stdout.split()[1:]

    def join(self, machine: Machine, *arguments: str, cut_short: str = "") -> None:
        """`cut_short`: kill the first try once this file of the data directory is there."""
        command = self.command(*arguments)
        if cut_short:
            data = machine.instance.data_dir
            first = subprocess.Popen(machine.within(*PODLING, *command, "--data-dir", str(data)))
            while not (data / cut_short).exists():
                assert first.poll() is None
            machine.run("kill", "-KILL", machine.run("cat", str(machine.instance.lock_file)).stdout)
            first.wait()
        began = time.monotonic()
        machine.podling(*command, "--detach")
        self.took[machine.name] = time.monotonic() - began

    def refused(self, machine: Machine, *arguments: str) -> str:
        done = machine.podling(*arguments, check=False)
        assert done.returncode == 1, done.stdout
        said = done.stderr.removeprefix("Error: ")
        assert said.count("\n") == 1, said
        return said.rstrip()


def etcd(wire: Wire, program: Path, directory: Path) -> tuple[subprocess.Popen[bytes], list[str]]:
    """Its process, and the options by which podling finds it."""
    authority = Authority(directory / "etcd-pki", datetime.now(UTC))
    shown, client = authority.server("etcd", "etcd", [ETCD]), authority.client("podling", "podling")
    url = f"https://{ETCD}:2379"
    flags = {
        "data-dir": directory / "etcd",
        "listen-client-urls": url,
        "advertise-client-urls": url,
        "cert-file": shown.certificate,
        "key-file": shown.key,
        "client-cert-auth": "true",
        "trusted-ca-file": authority.ca.certificate,
        "unsafe-no-fsync": "true",
        "log-level": "error",
    }
    command = [str(program), *(f"--{name}={value}" for name, value in flags.items())]
    with (directory / "etcd.log").open("wb") as log:
        process = subprocess.Popen(wire.within(*command), stdout=log, stderr=log)
    pair = ["--etcd-certfile", str(client.certificate), "--etcd-keyfile", str(client.key)]
    return process, ["--etcd-servers", url, "--etcd-cafile", str(authority.ca.certificate), *pair]


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory, kubernetes_programs: Path, image_archives: dict[str, Path]
) -> Iterator[Servers]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    directory = tmp_path_factory.mktemp("servers")
    with wired(directory) as wire:
        alpha, beta, gamma, delta, stranger = (wire.machine(name) for name in (*NAMES, "stranger"))
        made = Servers(alpha, beta, gamma, delta, stranger, {})
        process, options = etcd(wire, kubernetes_programs / "etcd", directory)
        try:
            made.alpha.podling("up", *options, "--detach")
            with ThreadPoolExecutor() as pool:
                both = [
                    pool.submit(made.join, made.beta, "--control-plane"),
                    pool.submit(made.join, made.gamma, "--control-plane", cut_short="pki/ca.key"),
                ]
                for one in both:
                    one.result()
            made.join(made.delta, "--print-join-command", cut_short="pki/kubelet-client-current.pem")
            for machine in (made.beta, made.gamma, made.delta):
                machine.podling("images", "load", str(image_archives[BUSYBOX]))
            yield made
            # Before their storage.
            for machine in wire.machines:
                machine.podling("down", check=False)
        finally:
            process.kill()
            process.wait()


NAMES = ("alpha", "beta", "gamma", "delta")
SERVERS = NAMES[:3]


def test_three_machines_are_api_servers_and_nodes(servers: Servers) -> None:
    sys.stdout.write(f"seconds from join to Ready: {servers.took}\n")
    machines = [servers.alpha, servers.beta, servers.gamma]
    for machine in machines:
        nodes = {one["metadata"]["name"]: one for one in servers.get("nodes", at=machine)["items"]}
        assert sorted(nodes) == sorted(NAMES)
        assert len({one["spec"]["podCIDR"] for one in nodes.values()}) == len(NAMES)
        assert servers.addresses(machine) == {one.address for one in machines}
    slices = servers.get("endpointslices", "-n", "kube-system")["items"]
    assert {one["endpoints"][0]["nodeName"] for one in slices} == {*SERVERS}


def test_any_server_reaches_any_node(servers: Servers) -> None:
    made = [pod(f"on-{name}", name, app="who") for name in ("beta", "gamma", "delta")]
    servers.gamma.kubectl(
        "apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
    )
    servers.beta.kubectl("wait", "pods", "-l", "app=who", "--for=condition=Ready", "--timeout=60s")
    for machine in (servers.alpha, servers.beta, servers.gamma):
        for name in ("beta", "gamma", "delta"):
            assert machine.kubectl("exec", f"on-{name}", "--", "hostname").stdout == f"on-{name}\n"


def names_resolve(servers: Servers) -> bool:
    """From the node that answers none itself."""
    name = "kubernetes.default.svc.cluster.local"
    looks = f"for i in $(seq 12); do timeout 3 nslookup -type=a {name} || exit 1; done"
    done = servers.beta.kubectl("exec", "on-delta", "--", "sh", "-c", looks, check=False)
    return done.returncode == 0


def test_names_are_answered_beside_each_server(servers: Servers) -> None:
    """Also beside `alpha`, which has no pods."""
    assert names_resolve(servers)


def test_what_is_wrong_is_refused_and_changes_nothing(servers: Servers) -> None:
    stranger = servers.stranger
    command = servers.command("--control-plane")
    *others, key = command
    wrong = servers.refused(stranger, *others, ("0" if key[0] != "0" else "1") + key[1:])
    assert wrong == "--certificate-key is not the one that was printed with this token"
    of_node = servers.command("--print-join-command")
    assert servers.refused(stranger, *of_node, "--control-plane", "--certificate-key", key) == (
        "the token is one of nodes, not of API servers: make another where an API server is, with "
        "`podling token create --control-plane`"
    )
    assert servers.refused(servers.beta, *command).startswith("podling is already running for ")
    assert not (stranger.instance.data_dir / "pki").exists()
    token = command[command.index("--token") + 1]
    config = ("--kubeconfig", str(servers.alpha.instance.kubeconfig))
    servers.alpha.run(*PODLING, "token", "delete", token, *config)
    id_ = token[:6]
    assert servers.refused(stranger, *command).startswith(f'the cluster knows no token "{id_}"')
    # What was to be handed over goes with the token.
    name = f"control-plane-{id_}"
    servers.until(
        lambda: (
            not servers.beta.kubectl(
                "get",
                f"secret/{name}",
                f"role/{name}",
                f"rolebinding/{name}",
                "-n",
                "kube-system",
                "--ignore-not-found",
            ).stdout
        )
    )
    assert "stranger" not in servers.beta.kubectl("get", "nodes").stdout


def test_a_server_that_is_killed_is_not_missed(servers: Servers) -> None:
    """It leads. A client of the node's own proxy sees one error at most."""
    delta, alpha = servers.delta, servers.alpha
    pid = delta.run("cat", str(delta.instance.lock_file)).stdout.strip()
    listening = delta.run("ss", "-Hltnp", "src", "127.0.0.1").stdout.splitlines()
    (port,) = {one.split()[3].rpartition(":")[2] for one in listening if f"pid={pid}," in one}
    client = subprocess.Popen(
        delta.within(sys.executable, str(CLIENT), str(delta.instance.data_dir), port, "delta"),
        stdout=subprocess.PIPE,
        text=True,
    )
    with client:
        assert client.stdout is not None
        assert client.stdout.readline() == "warm\n"
        alpha.kill()
        killed = time.monotonic()
        errors = json.loads(client.stdout.readline())
    # None if the node had turned to another server before, as it does when one takes two seconds to connect.
    assert len(errors) <= 1, errors
    leaderless = pod("later", "")
    del leaderless["spec"]["nodeName"]
    servers.beta.kubectl("apply", "-f", "-", input=json.dumps(leaderless))
    servers.beta.kubectl("wait", "pod/later", "--for=condition=PodScheduled", "--timeout=40s")
    scheduled = time.monotonic() - killed
    servers.until(lambda: servers.addresses() == {servers.beta.address, servers.gamma.address})
    gone = time.monotonic() - killed
    servers.until(lambda: names_resolve(servers))
    sys.stdout.write(f"after the kill: scheduled {scheduled:.1f} s, not listed {gone:.1f} s\n")
    assert scheduled < 20 and gone < 25


def test_it_comes_back_without_being_told_anything(servers: Servers) -> None:
    alpha = servers.alpha
    alpha.wire.start(alpha)
    alpha.podling("up", "--detach")
    servers.until(lambda: alpha.address in servers.addresses())
    servers.beta.kubectl("wait", "node/alpha", "--for=condition=Ready", "--timeout=60s")
    assert "etcd" in alpha.kubectl("get", "--raw", "/readyz?verbose").stdout


def test_servers_leave_but_for_the_last(servers: Servers) -> None:
    drained = servers.beta.kubectl("drain", "gamma", "--force", "--ignore-daemonsets").stdout
    assert "node/gamma drained" in drained
    servers.beta.kubectl("delete", "pods", "--all")
    for machine in (servers.gamma, servers.beta):
        said = machine.podling("leave").stdout
        assert said.endswith(f"{machine.name} has left the cluster\n")
        assert not (machine.instance.data_dir / "pki").exists()
        assert machine.address not in servers.addresses(servers.alpha)
    alpha = servers.alpha
    assert sorted(one["metadata"]["name"] for one in servers.get("nodes", at=alpha)["items"]) == [
        "alpha",
        "delta",
    ]
    known = servers.delta.instance.data_dir / "servers.json"
    servers.until(lambda: json.loads(known.read_text()) == [[alpha.address, 6443]])
    only = servers.refused(alpha, "leave")
    assert only == "this is the only API server of its cluster: `podling down` stops it"
    # What has left may join again.
    servers.join(servers.beta, "--control-plane")
    assert servers.addresses(alpha) == {alpha.address, servers.beta.address}
