"""Asks other API servers whether they are there, and what they have: as `system:kube-aggregator`, in the name
of this server and of nobody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

import aiohttp
import msgspec
from yarl import URL

from podling.apiserver.admission.webhook_client import words_of
from podling.apiserver.aggregation.merging import ListedResources, Told
from podling.apiserver.aggregation.passing import Aggregation, Learned, who
from podling.apiserver.connect.kubelets import http_connector
from podling.apiserver.paths.openapi.documents import INDEX, V2
from podling.apiserver.request.request import User
from podling.apiserver.request.response import JSON
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.rules.service_endpoints import NoEndpoint
from podling.model.types.apiregistration import APIService
from podling.model.types.rbac import MASTERS
from podling.streaming.upgrade import Address

AGGREGATOR = User("system:kube-aggregator", (MASTERS,))
PATIENCE = 5.0
"""Seconds that a server may take to say that it is there, or what it has."""
ATTEMPTS = 5
"""How often it is asked at a time, since a service may have several endpoints: one answer is enough."""
LARGEST = 32 << 20
"""Bytes of what a server may say of itself."""
APIGROUPS = "APIGroupDiscoveryList"
AGGREGATED = f"application/json;g=apidiscovery.k8s.io;v=v2;as={APIGROUPS},{JSON}"
FAULTS = (NoEndpoint, TimeoutError, aiohttp.ClientError, OSError, ValueError, StatusError)
"""Of a server that is asked what it has."""
CANCELED = "net/http: request canceled (Client.Timeout exceeded while awaiting headers)"


class Said(NamedTuple):
    code: int
    content_type: str
    body: bytes
    etag: str = ""


class _Place(msgspec.Struct):
    url: str = msgspec.field(default="", name="serverRelativeURL")


class _Index(msgspec.Struct):
    paths: dict[str, _Place] = {}


async def fault_of(aggregation: Aggregation, service: APIService) -> str:
    """Why the server does not answer discovery, in Kubernetes' words; empty if it does, and then
    `aggregation` knows what it has."""
    fault = ""
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(_fault(aggregation, service)) for _ in range(ATTEMPTS)]
        for done in asyncio.as_completed(asked):
            fault = await done
            if not fault:
                break
        for one in asked:
            one.cancel()
    learned = None
    if not fault:
        known = aggregation.learned.get((service.spec.group, service.spec.version)) or Learned([])
        async with asyncio.TaskGroup() as tasks:
            index = tasks.create_task(_said(aggregation, service, INDEX))
            older = tasks.create_task(_said(aggregation, service, V2, known.older_etag))
            # One that answers so far is available, whatever else it says: what it has is not known then.
            with suppress(*FAULTS):
                learned = await _learned(aggregation, service)
        described, said = "", older.result()
        with suppress(ValueError):
            paths = msgspec.json.decode(listed.body if (listed := index.result()) else b"", type=_Index).paths
            described = paths.get(f"apis/{service.spec.group}/{service.spec.version}", _Place()).url
        if said is not None and said.code == 304:
            text, etag = known.older, known.older_etag
        else:
            text, etag = (said.body, said.etag) if said else (b"", "")
        learned = learned and learned._replace(described=described, older=text, older_etag=etag)
    aggregation.learn(service, learned)
    return fault


async def _learned(aggregation: Aggregation, service: APIService) -> Learned:
    """What the server has, in either form. Raises what `address` and `ask` do, and StatusError for what is no
    discovery."""
    spec, address = service.spec, await aggregation.address(service)
    known = aggregation.learned.get((spec.group, spec.version))
    headers = {"Accept": AGGREGATED, **({"If-None-Match": known.etag} if known and known.etag else {})}
    said = await ask(address, url_at(address, "/apis"), headers)
    if known and said.code == 304:
        return known
    if said.code == 200 and f"as={APIGROUPS}" in said.content_type:
        told = json.decode(said.body, Told)
        return Learned(told.resources(spec.group, spec.version), said.etag)
    place = f"/apis/{spec.group}/{spec.version}"
    said = await ask(address, url_at(address, place), {"Accept": JSON})
    if said.code != 200:
        raise ValueError(f"{place} was answered {said.code}")
    listed = json.decode(said.body, ListedResources)
    return Learned(listed.told())


async def _fault(aggregation: Aggregation, service: APIService) -> str:
    try:
        address = await aggregation.address(service)
    except (NoEndpoint, OSError) as error:
        return str(error)
    url = url_at(address, f"/apis/{service.spec.group}/{service.spec.version}")
    try:
        said = await ask(address, url, {}, most=0)
    except TimeoutError:
        why = f'Get "{url}": {CANCELED}'
    except (aiohttp.ClientError, OSError, ValueError) as error:
        why = f'Get "{url}": {words_of(error, url)}'
    else:
        if 200 <= said.code < 300:
            return ""
        why = f"bad status from {url}: {said.code}"
    return f"failing or missing response from {url}: {why}"


async def _said(aggregation: Aggregation, service: APIService, path: str, etag: str = "") -> Said | None:
    """What the server says there if it is not what has that tag; None if it says nothing."""
    with suppress(*FAULTS):
        address = await aggregation.address(service)
        headers = {"Accept": JSON, **({"If-None-Match": etag} if etag else {})}
        said = await ask(address, url_at(address, path), headers)
        return said if said.code in (200, 304) else None
    return None


def url_at(address: Address, path: str) -> URL:
    return URL.build(scheme="https", host=address.host, port=address.port, path=path)


async def ask(address: Address, url: URL, headers: Mapping[str, str], most: int = LARGEST) -> Said:
    """What a GET is answered; its body is not read if `most`, in bytes, is 0. Raises TimeoutError,
    aiohttp.ClientError, OSError, ValueError for a longer answer."""
    async with (
        asyncio.timeout(PATIENCE),
        aiohttp.ClientSession(
            connector=http_connector(address), cookie_jar=aiohttp.DummyCookieJar()
        ) as session,
        session.get(
            url,
            headers=[*headers.items(), *who(AGGREGATOR)],
            server_hostname=address.server_name,
            allow_redirects=False,
        ) as answer,
    ):
        body = bytearray()
        if most:
            async for piece in answer.content.iter_any():
                body += piece
                if len(body) > most:
                    raise ValueError(f"an answer of more than {most} bytes")
        return Said(
            answer.status,
            answer.headers.get("Content-Type", ""),
            bytes(body),
            answer.headers.get("ETag", ""),
        )
