"""`podling services explain`: the objects of a cluster, and this machine's tables beside them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from itertools import chain

from podling.assemble.network import ProxyOptions, shapes
from podling.client.client import Client
from podling.model.types.discovery import EndpointSlice
from podling.model.types.node import Node
from podling.model.types.service import Service
from podling.network.explain import Cluster, explain_address, explain_service, may_have, place_of
from podling.network.loopback import LOOPBACK
from podling.network.nft import NftError, program
from podling.network.proxy import ZONE_LABEL
from podling.network.services import SERVICE_LABEL, NodeFacts
from podling.network.table import Shape

DENIED = "Operation not permitted"


async def explain(client: Client, options: ProxyOptions, what: str, namespace: str) -> list[str]:
    """Lines about `ADDRESS:PORT`, or the service of that name, on the node of `options`. Raises StatusError,
    OSError."""
    tables = shapes(options)
    place = place_of(what)
    if place is None:
        services, nodes = await asyncio.gather(
            client.list(Service, namespace, field_selector=f"metadata.name={what}"), client.list(Node)
        )
    else:
        services, nodes = await asyncio.gather(client.list(Service), client.list(Node))
    own = next((node for node in nodes.items if node.metadata.name == options.node), Node())
    facts = NodeFacts(options.node, own.metadata.labels.get(ZONE_LABEL, ""))
    addresses = [*(one.address for one in own.status.addresses), *LOOPBACK.values()]
    found = [one for one in services.items if place is None or may_have(one, *place, addresses)]
    slices = await asyncio.gather(*(_slices(client, one) for one in found))
    cluster = Cluster(found, chain.from_iterable(slices), facts, addresses)
    if place is None:
        return explain_service(cluster, (namespace, what), tables, in_kernel)
    return explain_address(cluster, *place, tables, in_kernel)


async def _slices(client: Client, service: Service) -> Sequence[EndpointSlice]:
    meta = service.metadata
    selector = f"{SERVICE_LABEL}={meta.name}"
    return (await client.list(EndpointSlice, meta.namespace, label_selector=selector)).items


def in_kernel(shape: Shape, name: str, key: str) -> str:
    table = f"{shape.family.name} {shape.table}"
    try:
        found = program(f"get element {table} {name} {{ {key} }}\n")
    except NftError as error:
        return "what only root may see" if DENIED in str(error) else ""
    match = re.search(r"elements = \{ ([^}]*?) \}", found)
    return match[1] if match else ""
