"""A machine becomes one more API server of a cluster that is kept in etcd, with a node of its own.

    discovery ─▶ the name is free ─▶ secrets, by token and key ─▶ etcd answers ─▶ the Node and its subnet
        ─▶ `shared.json` ─▶ `podling up`

`shared.json` is written last: where it is there, the machine is an API server, and `podling up` starts it.
What was cut short before is begun anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from ipaddress import ip_address

import msgspec
from msgspec.structs import replace

import podling.storage.etcd.etcd_pb2 as pb
from podling.assemble import up
from podling.assemble.discovery import Joining, by_token, client_of, discovered
from podling.assemble.etcd import STATUS, connect
from podling.assemble.join import check_name, new_member, registered
from podling.assemble.node_options import NodeOptions
from podling.assemble.process import Report
from podling.assemble.server_secrets import DATA, OF_ETCD, Handed, name_for, unseal
from podling.assemble.settle import choose, choose_range
from podling.assemble.shared import Shared, keep
from podling.client.tls import Pair, Trust
from podling.kubelet.config import KubeletConfig
from podling.machine.instance import Instance
from podling.machine.pki import Authority, write_whole
from podling.machine.start import StartError, machine_address
from podling.model.errors import StatusError
from podling.model.rules.bootstrap_tokens import NAMESPACE, key_hashes
from podling.model.time import SystemClock
from podling.model.types.core import Secret
from podling.model.types.node import Taint
from podling.storage.etcd.connection import EtcdError

MAKE_ANOTHER = "make another where an API server is, with `podling token create --control-plane`"


class JoinServerOptions(msgspec.Struct, frozen=True):
    """`key` is `--certificate-key`."""

    instance: Instance
    joining: Joining
    key: str
    node: NodeOptions = msgspec.field(default_factory=NodeOptions)
    address: str = ""
    """This machine's own when empty."""
    taints: Sequence[Taint] = ()


def run(options: JoinServerOptions, report: Report, ready: Callable[[], None]) -> None:
    """Join, and run until told to stop; `ready` is called once the node is Ready. Raises StartError."""
    options_of_up = up.UpOptions(options.instance, node=options.node)
    up.run(options_of_up, report, ready, partial(_join, options, report))


async def _join(options: JoinServerOptions, report: Report) -> None:
    """Raises StartError, and then nothing has changed but files that are not used."""
    instance, joining, name = options.instance, options.joining, options.node.name
    address = options.address or machine_address()
    if ip_address(address).is_loopback:
        raise StartError("this machine has no address that others reach: give one with --node-ip")
    check_new(instance)
    report(f"Joining the cluster at {joining.server} as {name}, as one more API server")
    instance.have_data_dir()
    handed = await _handed(options)
    of = _put(instance, handed)
    await _check_etcd(of)
    authority = Authority(instance.pki_dir, SystemClock().now())
    pair = authority.client("joining", f"system:node:{name}", ["system:nodes"])
    config = KubeletConfig(
        name, instance.kubelet_dir, instance.pod_logs_dir, address, **options.node.settings
    )
    client = client_of(joining, Trust(authority.ca.certificate), pair=Pair(*pair.files))
    try:
        subnet = await registered(client, new_member(config, options.taints))
    except OSError as error:
        raise StartError(f"the API server at {joining.server} cannot be reached: {error}") from error
    finally:
        await client.close()
    choose_range(instance, of.port, of.service_range)
    choose(instance, of.port, subnet)
    instance.etcd_cluster.write_text(handed.cluster)
    keep(instance, replace(of, node=name, address=address))


def check_new(instance: Instance) -> None:
    """Raises StartError for a machine that is part of a cluster."""
    if instance.shared_file.exists():
        raise StartError(
            "this machine is an API server already: `podling up` starts it, and `podling leave` takes it out"
        )
    if instance.joined_kubeconfig.exists():
        raise StartError("this machine is a node of a cluster already: `podling leave` first")
    if instance.database.exists() or instance.etcd_cluster.exists():
        raise StartError(f"{instance.data_dir} has a cluster of its own: give another --data-dir")


async def _handed(options: JoinServerOptions) -> Handed:
    """Raises StartError."""
    joining = options.joining
    authority = await discovered(joining)
    token = joining.token.partition(".")[0]
    try:
        async with by_token(joining, authority) as client:
            await check_name(client, options.node.name)
            secret = await client.get(Secret, name_for(token), NAMESPACE)
    except StatusError as error:
        if error.code == 401:
            raise StartError(f"the token is not taken any more: {MAKE_ANOTHER}") from error
        if error.code in (403, 404):
            raise StartError(f"the token is one of nodes, not of API servers: {MAKE_ANOTHER}") from error
        raise StartError(f"the cluster hands over nothing: {error.message}") from error
    except OSError as error:
        raise StartError(f"the cluster hands over nothing: {error}") from error
    handed = unseal(secret.data.get(DATA, b""), options.key, token)
    if not {*key_hashes(handed.files["ca.crt"])} & {*key_hashes(authority)}:
        raise StartError("what the cluster hands over is of another authority than its own")
    return handed


def _put(instance: Instance, handed: Handed) -> Shared:
    """Write the files into `pki`, whole or not at all, and return where they are."""
    made = instance.data_dir / "joining"
    shutil.rmtree(made, ignore_errors=True)
    for name, content in handed.files.items():
        file = made / name
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(file, content, 0o600 if name.endswith(".key") else 0o644, durable=True)
    shutil.rmtree(instance.pki_dir, ignore_errors=True)
    made.rename(instance.pki_dir)
    files = [str(instance.pki_dir / name) if name in handed.files else "" for name in OF_ETCD]
    return replace(handed.shared, **dict(zip(("ca", "certificate", "key"), files, strict=True)))


async def _check_etcd(of: Shared) -> None:
    """Raises StartError if this machine does not reach it."""
    connection = await connect(of.etcd)
    try:
        await connection.ask(STATUS, pb.StatusRequest(), pb.StatusResponse)
    except EtcdError as error:
        raise StartError(f"this machine does not reach the objects of the cluster: {error}") from error
    finally:
        await connection.close()
