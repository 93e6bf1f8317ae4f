"""What a start settles before any part is built: the machine is fit, the data directory is ours, the port,
the subnet and the certificates are there.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO

from podling import doctor
from podling.client import kubeconfig
from podling.instance import DEFAULT_PORT, LAYOUT_VERSION, Choices, Instance, LayoutError, routed
from podling.pki import Authority, KeyPair

API_HOST = "127.0.0.1"
KUBELET_PORT = 10250
CLUSTER_NAME = "podling"


class StartError(Exception):
    """podling cannot start, or not go on; the message is for the user and says what to do."""


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What the command line asks for. `port` None is the port of the last start, or the default."""

    instance: Instance
    port: int | None = None
    node_name: str = ""
    registry_mirrors: Mapping[str, str] = field(default_factory=dict)
    cri_endpoint: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A machine and a data directory ready for the parts. `lock` is held while podling runs."""

    instance: Instance
    lock: IO[str]
    port: int
    subnet: str
    node_name: str
    node_ip: str
    kubelet_port: int
    ca: Path
    apiserver: KeyPair
    apiserver_client: KeyPair
    kubelet: KeyPair


def prepare(options: UpOptions, now: datetime) -> Prepared:
    """Raises StartError."""
    instance = options.instance
    check_machine()
    lock = _lock(instance)
    try:
        instance.data_dir.mkdir(parents=True, exist_ok=True, mode=0o711)
        choices = _choose(instance, options.port)
        authority = Authority(instance.pki_dir, now)
        node_name = options.node_name or socket.gethostname().lower()
        node_ip = machine_address()
        prepared = Prepared(
            instance=instance,
            lock=lock,
            port=choices.port,
            subnet=choices.subnet,
            node_name=node_name,
            node_ip=node_ip,
            kubelet_port=free_port(node_ip, KUBELET_PORT),
            ca=authority.ca.certificate,
            apiserver=authority.server("apiserver", "kube-apiserver", api_server_hosts(node_ip)),
            apiserver_client=authority.client(
                "apiserver-kubelet-client", "kube-apiserver-kubelet-client", ["system:masters"]
            ),
            kubelet=authority.server(
                "kubelet", f"system:node:{node_name}", [node_name, node_ip, "localhost", "127.0.0.1"]
            ),
        )
        _write_kubeconfig(prepared, authority)
    except BaseException:
        lock.close()
        raise
    return prepared


def check_machine() -> None:
    """Raises StartError with everything that is missing, and how to get it."""
    findings = doctor.examine({})
    failed = [finding for finding in findings if finding.verdict is doctor.Verdict.FAILED]
    if not failed:
        return
    lines = [f"  {finding.what}: {finding.found} ({finding.remedy})" for finding in failed]
    if packages := doctor.missing_packages(findings):
        lines.append(f"Install what is missing with: apt-get install {' '.join(packages)}")
    raise StartError("\n".join(["this machine lacks what podling needs:", *lines]))


def api_server_hosts(node_ip: str) -> list[str]:
    """The names and addresses the API server's certificate is for."""
    service = "kubernetes.default.svc.cluster.local"
    parts = service.split(".")
    names = [".".join(parts[:count]) for count in (1, 2, 3, 5)]
    return list(dict.fromkeys(["localhost", *names, API_HOST, node_ip]))


def machine_address() -> str:
    """The address this machine would use to reach others; loopback where it has no network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Connecting a datagram socket only asks the routing table; nothing is sent.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        address: str = probe.getsockname()[0]
        return address


def free_port(address: str, preferred: int) -> int:
    """`preferred` where nothing listens on it yet, otherwise any that is free."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    raise StartError(f"no port is free on {address}")


def _lock(instance: Instance) -> IO[str]:
    lock = instance.lock()
    if lock is None:
        raise StartError(
            f"podling is already running for {instance.data_dir} (process {instance.running()}): "
            "stop it with `podling down`, or start another with another --data-dir and --port"
        )
    return lock


def _choose(instance: Instance, wanted_port: int | None) -> Choices:
    try:
        before = instance.choices()
        port = wanted_port or (before.port if before else DEFAULT_PORT)
        _check_port(port)
        routes = Path("/proc/net/route").read_text()
        subnet = instance.claim_subnet(
            before.subnet if before else None, lambda subnet: routed(subnet, routes, instance.bridge)
        )
    except (LayoutError, OSError) as error:
        raise StartError(str(error)) from error
    choices = Choices(LAYOUT_VERSION, port, subnet)
    if choices != before:
        instance.keep(choices)
    return choices


def _check_port(port: int) -> None:
    finding = doctor.port("API server", port)
    if finding.verdict is doctor.Verdict.FAILED:
        raise StartError(f"port {port} is in use: {finding.remedy}")


def _write_kubeconfig(prepared: Prepared, authority: Authority) -> None:
    admin = authority.client("admin", "kubernetes-admin", ["system:masters"])
    access = kubeconfig.Access(
        server=f"https://{API_HOST}:{prepared.port}",
        certificate_authority=prepared.ca.read_bytes(),
        client_certificate=admin.certificate.read_bytes(),
        client_key=admin.key.read_bytes(),
    )
    kubeconfig.write(prepared.instance.kubeconfig, CLUSTER_NAME, access)
