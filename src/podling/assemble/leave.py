"""A node leaves its cluster: its pods go elsewhere, its Node is removed, and what it knew of the cluster. An
API server leaves with its node.

Volumes of the machine stay, because users have written them, and so do the images.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec

from podling.assemble import down
from podling.assemble.alone import read_access
from podling.assemble.join import KNOWN_FILE
from podling.assemble.node_certificates import node_of
from podling.assemble.process import Report, first
from podling.assemble.shared import Shared, kept
from podling.assemble.worker import SERVERS_FILE, looking_after
from podling.client.client import Client
from podling.client.kubeconfig import Access
from podling.kubelet.files.tree import remove
from podling.machine.instance import Instance
from podling.machine.start import StartError
from podling.model.errors import StatusError
from podling.model.rules.service_endpoints import API_NAMESPACE, API_SERVICE
from podling.model.types.node import Node
from podling.model.types.service import Endpoints
from podling.remote.drain import DrainError, drain


class LeaveOptions(msgspec.Struct, frozen=True):
    instance: Instance
    within: float = 300.0
    """Seconds for its pods to end."""
    force: bool = False
    """Whether it leaves though pods are lost by that, or the cluster does not answer."""


def run(options: LeaveOptions, report: Report) -> None:
    """Raises StartError, and then the machine is still a node, which takes no new pods."""
    instance = options.instance
    plane = kept(instance)
    if plane is not None and not plane.node:
        raise StartError("this machine is an API server without a node: it is out once it has ended")
    if plane is None and not instance.joined_kubeconfig.exists():
        raise StartError(f"this machine has joined no cluster with the data directory {instance.data_dir}")
    node = plane.node if plane else node_of(instance.pki_dir)
    if instance.running() is None and not options.force:
        again = "up" if plane else "join"
        raise StartError(
            f"podling does not run, so pods cannot end: start it with `podling {again}`, or --force"
        )
    access = read_access(instance.kubeconfig if plane else instance.joined_kubeconfig)
    try:
        asyncio.run(_out(options, access, node, plane, report))
    except* StartError as errors:
        raise first(errors) from errors
    down.stop(instance, report)
    for file in (
        instance.shared_file,
        instance.joined_kubeconfig,
        instance.etcd_cluster,
        *(instance.data_dir / name for name in (KNOWN_FILE, SERVERS_FILE)),
        *((instance.kubeconfig,) if plane else ()),
    ):
        file.unlink(missing_ok=True)
    instance.choices_file.unlink(missing_ok=True)
    for directory in (instance.pki_dir, instance.kubelet_dir, instance.data_dir / "logs", instance.cni_dir):
        with suppress(FileNotFoundError):
            remove(directory)
    report(f"{node} has left the cluster")


async def _out(
    options: LeaveOptions, access: Access, node: str, plane: Shared | None, report: Report
) -> None:
    """Drain and remove the Node. Raises StartError."""
    instance = options.instance
    removing = access if plane else looking_after(access, instance, node)
    client, beside = Client(access.transport()), Client(removing.transport())
    try:
        if instance.running() is not None:
            if plane is not None:
                await _check_others(client, plane.address)
            await drain(client, node, options.within, report, force=options.force)
        # A kubelet may not remove its Node.
        await beside.delete(Node, node)
    except* DrainError as errors:
        raise StartError(
            f"{errors.exceptions[0]}: the node takes no new pods; --force evicts them"
        ) from errors
    except* (StatusError, OSError) as errors:
        why = f"the cluster does not let the node leave: {errors.exceptions[0]}"
        if not options.force:
            raise StartError(f"{why}; --force leaves all the same") from errors
        report(f"{why}; remove it there with `kubectl delete node {node}`")
    finally:
        await client.close()
        await beside.close()


async def _check_others(client: Client, address: str) -> None:
    """Raises StartError for the last API server of a cluster; StatusError, OSError."""
    found = (await client.get(Endpoints, API_SERVICE, API_NAMESPACE)).subsets
    if not {one.ip for subset in found for one in subset.addresses} - {address}:
        raise StartError("this is the only API server of its cluster: `podling down` stops it")
