"""A node leaves its cluster: its pods go elsewhere, its Node is removed, and what it knew of the cluster.

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
from podling.assemble.worker import SERVERS_FILE, looking_after
from podling.client.client import Client
from podling.kubelet.files.tree import remove
from podling.machine.instance import Instance
from podling.machine.start import StartError
from podling.model.errors import StatusError
from podling.model.types.node import Node
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
    if not instance.joined_kubeconfig.exists():
        raise StartError(f"this machine has joined no cluster with the data directory {instance.data_dir}")
    node = node_of(instance.pki_dir)
    if instance.running() is None and not options.force:
        raise StartError("podling does not run, so pods cannot end: start it with `podling join`, or --force")
    try:
        asyncio.run(_out(options, node, report))
    except* StartError as errors:
        raise first(errors) from errors
    down.stop(instance, report)
    for file in (
        instance.joined_kubeconfig,
        *(instance.data_dir / name for name in (KNOWN_FILE, SERVERS_FILE)),
    ):
        file.unlink(missing_ok=True)
    instance.choices_file.unlink(missing_ok=True)
    for directory in (instance.pki_dir, instance.kubelet_dir, instance.data_dir / "logs", instance.cni_dir):
        with suppress(FileNotFoundError):
            remove(directory)
    report(f"{node} has left the cluster")


async def _out(options: LeaveOptions, node: str, report: Report) -> None:
    """Drain and remove the Node. Raises StartError."""
    instance = options.instance
    access = read_access(instance.joined_kubeconfig)
    client, beside = Client(access.transport()), Client(looking_after(access, instance, node).transport())
    try:
        if instance.running() is not None:
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
