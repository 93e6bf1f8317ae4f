"""Network policies of a node: in the process of its kubelet, or in another, which the kubelet asks.

    kubelet ──the socket `policies` of the run directory──▶ `podling network --network-policies`

A question is the addresses of a pod's sandbox in a line and the pod in another; the answer is a line: why the
policies do not hold for them, empty if they do. Told to stop, `podling network` leaves socket and tables as
they are, so that no pod starts without policies meanwhile; `podling down` removes them.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informers
from podling.machine.instance import Instance
from podling.machine.network import unseen_pods
from podling.machine.start import StartError, writing
from podling.model.codec import json as wire
from podling.model.errors import StatusError
from podling.model.time import SystemClock
from podling.model.types.core import Namespace
from podling.model.types.networking import NetworkPolicy
from podling.model.types.pod import Pod
from podling.network.nft import Nft
from podling.network.policies import WITHIN, Policies
from podling.network.table import IPV4, IPV6, Shape
from podling.process.metrics import Source

if TYPE_CHECKING:
    from podling.kubelet.worker.context import Admit

COMPONENT = "podling-network"
"""Whose events those about policies are."""
LONGEST = 4 << 20
"""Bytes of a line: a pod has at most 1.5 MiB."""
LATER = 2.0
"""Seconds that an answer may come after those that the other process waits."""


def policies(client: Client, informers: Informers, instance: Instance, node: str) -> Policies:
    """What enforces them on the pods of this node; make it before the informers start."""
    families = (IPV4, IPV6) if Path("/proc/sys/net/ipv6").exists() else (IPV4,)
    shapes = [Shape(family, instance.policies_table) for family in families]
    events = EventRecorder(client, SystemClock(), COMPONENT, node)
    return Policies(informers, Nft(), shapes, node, events, lambda: unseen_pods(instance.bridge))


async def enforce(
    client: Client, instance: Instance, node: str, measure: Callable[[Source], None] | None = None
) -> None:
    """Enforce policies on the pods of this node for ever, and tell its kubelet when they hold. Raises
    StartError if they, or what they are about, may not be read."""
    for type_ in (NetworkPolicy, Pod, Namespace):
        try:
            await client.list(type_)
        except StatusError as error:
            raise StartError(f"network policies cannot be enforced: {error.message}") from error
    enforced = policies(client, Informers(client), instance, node)
    if measure:
        measure(enforced.metrics)
    with writing(instance.run_dir):
        instance.run_dir.mkdir(parents=True, exist_ok=True)
        listening = listener(instance.policies_socket)
    async with await answering(enforced.admit, listening):
        await enforced.run()


def listener(path: Path) -> socket.socket:
    """A socket for root alone, in the place of one that is left. Raises OSError."""
    path.unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(path))
    path.chmod(0o600)
    return made


async def answering(admit: Admit, listening: socket.socket) -> asyncio.Server:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            addresses = json.loads(await reader.readline())
            why = await admit(wire.decode(await reader.readline(), Pod), tuple(addresses))
            writer.write(why.encode() + b"\n")
            await writer.drain()
        finally:
            writer.close()

    return await asyncio.start_server(answer, sock=listening, limit=LONGEST)


def asking(path: Path) -> Admit:
    """Asks who listens at a socket; if nobody ever has, policies are no matter of podling's."""

    async def admit(pod: Pod, addresses: Sequence[str]) -> str:
        if not path.exists():
            return ""
        try:
            async with asyncio.timeout(WITHIN + LATER):
                reader, writer = await asyncio.open_unix_connection(path)
                try:
                    writer.write(json.dumps(addresses).encode() + b"\n" + wire.encode(pod) + b"\n")
                    answer = await reader.readline()
                finally:
                    writer.close()
                    with suppress(OSError):
                        await writer.wait_closed()
        except (OSError, TimeoutError):
            answer = b""
        if not answer:
            return "`podling network`, which enforces network policies here, does not answer"
        return answer.decode().strip()

    return admit
