"""Kubernetes' own API server with its etcd, and podling's: each alone on loopback, for its administrator.

Kubernetes' programs are no part of this project: `PODLING_UPSTREAM` names a directory whose `unpack DIR`
makes `DIR/etcd` and `DIR/kube-apiserver`.
"""

from __future__ import annotations

import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import leftovers
from peer.server import Server, running, until_listening, until_ready, write_kubeconfig
from podling.machine.pki import Authority
from podling.model.types.rbac import MASTERS
from ports import free_port
from untold import check_told

HOST = "127.0.0.1"
SERVICE_CIDR, SERVICE_ADDRESS = "10.96.0.0/16", "10.96.0.1"
ADMIN = "kubernetes-admin"
TOKEN = "peer-admin"
ETCD_URL = "etcd.url"
"""The file in the directory of Kubernetes' API server that says where its etcd is."""
"""Bindings."""


@contextmanager
def kubernetes(programs: Path, directory: Path, *flags: str, **how: Any) -> Iterator[Server]:
    """Kubernetes' API server while the block runs; `how` is as of `kubernetes_process`."""
    with kubernetes_process(programs, directory, *flags, **how) as (server, _):
        yield server


@contextmanager
def kubernetes_process(
    programs: Path,
    directory: Path,
    *flags: str,
    durable: bool = False,
    ready: str = "/readyz",
    etcd_url: str = "",
    host: str = HOST,
    port: int = 0,
) -> Iterator[tuple[Server, subprocess.Popen[bytes]]]:
    """Kubernetes' API server while the block runs. It keeps everything in `directory`. `durable`: nothing
    that it acknowledged is lost if the machine fails, which tests do not wait for. `ready`: what is asked
    until it answers 200. `etcd_url`: an etcd that runs already, in place of one of its own. It listens on
    `host` and `port`, on any free one without."""
    authority = _authority(directory)
    own = etcd_server(programs / "etcd", directory, durable=durable)
    with nullcontext(etcd_url) if etcd_url else own as etcd:
        port, log = port or free_port(), directory / "kube-apiserver.log"
        server = _server("kube-apiserver", port, directory, TOKEN, host)
        write_kubeconfig(server)
        usual = _flags(directory, authority, etcd, host, port)
        if any(one.startswith("--authorization-") for one in flags):
            usual = [one for one in usual if not one.startswith("--authorization-mode=")]
        command = [str(programs / "kube-apiserver"), *usual, *flags]
        with running(command, log) as process:
            until_ready(server, process, log, ready)
            yield server, process


@contextmanager
def podling(directory: Path, *flags: str, ready: str = "/readyz") -> Iterator[Server]:
    """`podling apiserver` while the block runs, with its objects in `directory`."""
    with podling_process(directory, free_port(), *flags, ready=ready) as (server, _):
        yield server


@contextmanager
def podling_process(
    directory: Path, port: int, *flags: str, ready: str = "/readyz"
) -> Iterator[tuple[Server, subprocess.Popen[bytes]]]:
    """The same, for who ends it himself."""
    log = directory / "apiserver.log"
    leftovers.note(directory)
    _authority(directory)
    where = ["--data-dir", str(directory), "--port", str(port), "--advertise-address", HOST]
    where += ["--service-cluster-ip-range", SERVICE_CIDR]
    server = _server("podling", port, directory)
    with running([sys.executable, "-m", "podling", "apiserver", *where, *flags], log) as process:
        until_ready(server, process, log, ready)
        yield server, process
    check_told(log)


Process = tuple[Server, subprocess.Popen[bytes]]


@contextmanager
def two_podlings(programs: Path, directory: Path, *flags: str) -> Iterator[tuple[Process, Process]]:
    """Two of podling's on one etcd, both ready."""
    with ExitStack() as stack:
        etcd = stack.enter_context(etcd_server(programs / "etcd", directory, durable=False))
        both = []
        for name in ("first", "second"):
            (own := directory / name).mkdir()
            both.append(
                stack.enter_context(podling_process(own, free_port(), "--etcd-servers", etcd, *flags))
            )
        first, second = both
        until_default(second[0])
        yield first, second


def until_default(server: Server) -> None:
    """Returns once there is the namespace `default`: a server is ready before it has made it."""
    with server.asking() as asking:
        namespaces = asking.watch("/api/v1/namespaces?watch=1")
        next(one for one in namespaces if one["metadata"]["name"] == "default")


def _authority(directory: Path) -> Authority:
    """What the server in `directory` trusts; it has signed the administrator's certificate."""
    authority = Authority(directory / "pki", datetime.now(UTC))
    authority.client("admin", ADMIN, [MASTERS])
    return authority


def _server(name: str, port: int, directory: Path, token: str = "", host: str = HOST) -> Server:
    pki = directory / "pki"
    tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    return Server(name, host, port, pki / "ca.crt", directory / "admin.conf", tls, token)


@contextmanager
def etcd_server(
    program: Path, directory: Path, *, durable: bool, tls: Mapping[str, object] | None = None
) -> Iterator[str]:
    """Its URL, https with `tls`, which are flags."""
    port = free_port()
    client, peers = f"{'https' if tls else 'http'}://{HOST}:{port}", f"http://{HOST}:{free_port()}"
    flags = {
        "name": "peer",
        "data-dir": directory / "etcd",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peers,
        "initial-advertise-peer-urls": peers,
        "initial-cluster": f"peer={peers}",
        "unsafe-no-fsync": str(not durable).lower(),
        # Milliseconds. It leads itself, and begins once it has waited for others.
        "heartbeat-interval": 20,
        "election-timeout": 200,
        "log-level": "error",
        **(tls or {}),
    }
    command = [str(program), *(f"--{name}={value}" for name, value in flags.items())]
    (directory / ETCD_URL).write_text(client)
    with running(command, directory / "etcd.log") as process:
        until_listening(HOST, port, process, directory / "etcd.log")
        yield client


def _flags(directory: Path, authority: Authority, etcd: str, host: str, port: int) -> list[str]:
    serving = authority.server("apiserver", "kube-apiserver", [host, "localhost", SERVICE_ADDRESS])
    kubelets = authority.client("kubelet-client", "kube-apiserver-kubelet-client", [MASTERS])
    accounts = authority.client("service-accounts", "service-accounts")
    tokens = directory / "tokens.csv"
    tokens.write_text(f"{TOKEN},{ADMIN},,{MASTERS}\n")
    flags = {
        "etcd-servers": etcd,
        "bind-address": host,
        "advertise-address": host,
        "secure-port": port,
        "tls-cert-file": serving.certificate,
        "tls-private-key-file": serving.key,
        "client-ca-file": authority.ca.certificate,
        "token-auth-file": tokens,
        # Not by the node's name, which only leads to it where a resolver knows it.
        "kubelet-preferred-address-types": "InternalIP",
        "kubelet-client-certificate": kubelets.certificate,
        "kubelet-client-key": kubelets.key,
        "service-cluster-ip-range": SERVICE_CIDR,
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": accounts.certificate,
        "service-account-signing-key-file": accounts.key,
        "enable-bootstrap-token-auth": "true",
        "authorization-mode": "Node,RBAC",
        # As kubeadm sets it; podling always has it.
        "enable-admission-plugins": "NodeRestriction",
        "allow-privileged": "true",
        # Endpoints of a loopback address are refused, and nothing here asks for them.
        "endpoint-reconciler-type": "none",
    }
    return [f"--{name}={value}" for name, value in flags.items()]
