"""Passes requests on to the API servers that have their groups, as Kubernetes' aggregator does.

An APIService names the service of such a server. It is reached at an endpoint of the service, over TLS by the
name of the service, with the certificate of the front proxy; headers tell it whose request it is. Faults on
the way are answered in plain text, as in Kubernetes. A request that is passed on has no seat here: how many
of one APIService may wait for an answer is limited by MOST_WAITING.
"""

from __future__ import annotations

import asyncio
import posixpath
import random
import re
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus, unquote_to_bytes

import aiohttp
from aiohttp import web
from yarl import URL

from podling.apiserver.admission.plugin import Objects
from podling.apiserver.admission.webhook_client import words_of
from podling.apiserver.authn.authenticators import says_who
from podling.apiserver.connect.http import AS_IT_IS, OURS, passed_on, whence
from podling.apiserver.connect.kubelet import joined
from podling.apiserver.fairness.fairness import too_many_requests
from podling.apiserver.paths.discovery import Discovery
from podling.apiserver.paths.openapi.documents import PREFIX as DESCRIBED
from podling.apiserver.paths.openapi.documents import OpenAPI
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import Request, User, decoded
from podling.apiserver.request.response import TEXT, Response
from podling.model.rules.api_services import is_available, server_name
from podling.model.rules.service_endpoints import NoEndpoint, endpoints_of
from podling.model.types.apiregistration import APIService, APIServiceReference
from podling.model.types.discovery import EndpointSlice
from podling.model.types.service import Service
from podling.process.tls import Reread, connecting_context
from podling.process.waits import apart
from podling.streaming.upgrade import Address, Refused, Upgraded, request_head, upgrade
from podling.streaming.wire import ProtocolError

UNAVAILABLE = "service unavailable"
REDIRECTED = "the backend attempted to redirect this request, which is not permitted"
TIMED_OUT = (
    b'{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted '
    b'timeout","reason":"Timeout","details":{},"code":504}\n'
)
WITHIN = 60.0
"""Seconds in which another server must begin to answer, unless it is asked for a watch: as Kubernetes'
`--request-timeout`."""
MOST_WAITING = 200
"""Requests of one APIService that wait for the head of an answer."""
MOST_CONTEXTS = 64
USER_HEADER, UID_HEADER, GROUP_HEADER = "X-Remote-User", "X-Remote-Uid", "X-Remote-Group"
EXTRA_PREFIX = "X-Remote-Extra-"
FORWARDED_UPGRADE = frozenset({"upgrade", "connection"})
_TOKEN = re.compile(rb"[^!#$&'*+\-.^_`|~0-9A-Za-z]")
_BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")

choose = random.choice

Pass = Callable[[RequestContext], Awaitable[Response]]
Told = list[tuple[str, str]]


class Learned(NamedTuple):
    """What a server has said of itself: resources as in discovery, the URL where it describes them, empty if
    it does not, and its description of all it has in the older form, with a tag."""

    resources: Sequence[Any]
    etag: str = ""
    described: str = ""
    older: bytes = b""
    older_etag: str = ""


class Remote(NamedTuple):
    """A group and version that another server has, and what it has said of them; None if it does not
    answer. Priorities are the least of the group, and that of the version."""

    group: str
    version: str
    priorities: tuple[int, int]
    learned: Learned | None


class Aggregation:
    """Knows which groups and versions other servers have. `shown`: files of the certificate they are shown,
    and of its key."""

    def __init__(self, objects: Objects, shown: tuple[Path, Path] | None) -> None:
        self.services: dict[tuple[str, str], APIService] = {}
        """Those with a service, by group and version."""
        self.learned: dict[tuple[str, str], Learned] = {}
        self.discovery: Discovery | None = None
        self.openapi: OpenAPI | None = None
        """Where they are told of, and that they are described."""
        self._told: list[Remote] = []
        self._objects = objects
        self._shown = shown
        self._contexts: dict[tuple[bytes, bool], Reread[ssl.SSLContext]] = {}
        self._waiting: Counter[str] = Counter()

    def changed(self, name: tuple[str, str], new: APIService | None, type_: type[Any]) -> None:
        version, _, group = name[1].partition(".")
        if new is not None and new.spec.service is not None:
            self.services[group, version] = new
        elif self.services.pop((group, version), None) is not None:
            self.learned.pop((group, version), None)
        else:
            return
        self._tell()

    def learn(self, service: APIService, learned: Learned | None) -> None:
        """What its server has, if it says so and is still asked for."""
        key = (service.spec.group, service.spec.version)
        if learned is None or key not in self.services:
            self.learned.pop(key, None)
        else:
            self.learned[key] = learned
        self._tell()

    def _tell(self) -> None:
        found = []
        for key, service in self.services.items():
            spec = service.spec
            known = self.learned.get(key) if is_available(service.status) else None
            found.append(Remote(*key, (spec.group_priority_minimum, spec.version_priority), known))
        if found != self._told and self.discovery is not None:
            from podling.apiserver.aggregation.merging import in_order, merge
            from podling.apiserver.paths.openapi.joining import Description

            self._told = found
            merge(self.discovery, found)
            if self.openapi is not None:
                self.openapi.elsewhere = {
                    f"apis/{one.group}/{one.version}": one.learned.described
                    for one in found
                    if one.learned is not None and one.learned.described
                }
                older = {(one.group, one.version): one.learned.older for one in found if one.learned}
                ordered = [key for key in in_order(older, found) if older[key]]
                self.openapi.join([Description("/apis/{}/{}".format(*key), older[key]) for key in ordered])

    def passes(self, path: str) -> Pass | None:
        """Who answers a request for this path, decoded, if it is not this server."""
        parts = path.split("/", 4)
        if self.openapi is not None and path.removeprefix(DESCRIBED) in self.openapi.elsewhere:
            parts = path.removeprefix(DESCRIBED.rstrip("/")).split("/")
        elif len(parts) < 4 or parts[1] != "apis":
            return None
        found = self.services.get((parts[2], parts[3]))
        return None if found is None else partial(self._passed, found)

    async def address(self, service: APIService) -> Address:
        """An endpoint of the service. Raises NoEndpoint, OSError for a caBundle that cannot be used."""
        named = _reference(service)
        found = self._objects.find(Service, named.namespace, named.name)
        slices = self._objects.all(EndpointSlice, named.namespace)
        host, port = choose(endpoints_of(named.name, named.port or 443, found, slices))
        return Address(host, port, await self._context(service), server_name(named))

    async def _context(self, service: APIService) -> ssl.SSLContext:
        bundle, verify = service.spec.ca_bundle, not service.spec.insecure_skip_tls_verify
        key = (bundle, verify)
        if key not in self._contexts:
            if len(self._contexts) >= MOST_CONTEXTS:
                self._contexts.clear()
            make = partial(_context, bundle or None, verify, self._shown)
            # The authorities of the machine take long to read.
            self._contexts[key] = await apart(Reread, self._shown or (), make)
        return self._contexts[key].get()

    async def _passed(self, service: APIService, context: RequestContext) -> Response:
        name, request = service.metadata.name, context.request
        if not is_available(service.status):
            return fault(503, UNAVAILABLE)
        if self._waiting[name] >= MOST_WAITING:
            return too_many_requests()
        try:
            address = await self.address(service)
        except NoEndpoint:
            return fault(503, UNAVAILABLE)
        except OSError as error:
            return fault(500, str(error))
        target, told = target_of(request), [*who(context.user), *_whence(request)]
        with self._waits(name):
            try:
                async with asyncio.timeout(None if context.info.verb == "watch" else WITHIN):
                    if request.headers.get("Upgrade"):
                        return await _upgraded(request, address, target, told)
                    answer = await passed_on(request, address, target, told)
            except TimeoutError:
                return Response(504, TIMED_OUT, TEXT)
            except (aiohttp.ClientError, OSError, ValueError) as error:
                named = URL.build(scheme="https", host=address.host, port=address.port)
                return fault(503, f"error trying to reach service: {words_of(error, named)}")
        if 300 <= answer.status < 400 and "Location" in answer.headers:
            await answer.body.aclose()  # type: ignore[union-attr]
            return Response(502, REDIRECTED.encode(), TEXT)
        return answer

    @contextmanager
    def _waits(self, name: str) -> Iterator[None]:
        self._waiting[name] += 1
        try:
            yield
        finally:
            self._waiting[name] -= 1
            if not self._waiting[name]:
                del self._waiting[name]


def _reference(service: APIService) -> APIServiceReference:
    assert service.spec.service is not None, "only those with a service are kept"
    return service.spec.service


def _context(bundle: bytes | None, verify: bool, shown: tuple[Path, Path] | None) -> ssl.SSLContext:
    context = connecting_context(bundle, verify=verify)
    if shown is not None:
        context.load_cert_chain(*shown)
    return context


def fault(code: int, why: str) -> Response:
    """In plain text, as Kubernetes' aggregator answers."""
    return Response(code, f"{why}\n".encode(), TEXT, {"X-Content-Type-Options": "nosniff"})


def target_of(request: Request) -> str:
    """Path and query as they are passed on: the path decoded and encoded again, the parameters by name."""
    path = quote(decoded(request.path), safe=AS_IT_IS)
    query = go_query(request.query)
    return f"{path}?{query}" if query else path


def go_query(query: str) -> str:
    """The query as Go writes it after reading: sorted by name, without what Go cannot read."""
    found = []
    for part in query.split("&"):
        if part and ";" not in part and not _BROKEN_ESCAPE.search(part):
            name, _, value = part.replace("+", " ").partition("=")
            found.append((unquote_to_bytes(name), unquote_to_bytes(value)))
    found.sort(key=lambda pair: pair[0])
    return "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in found)


def who(user: User) -> Told:
    """The headers that tell whose request it is."""
    told = [(USER_HEADER, user.name)]
    if user.uid:
        told.append((UID_HEADER, user.uid))
    told += [(GROUP_HEADER, group) for group in user.groups]
    for key, values in user.extra:
        escaped = _TOKEN.sub(lambda found: b"%%%02X" % found[0][0], key.encode()).decode()
        # As Go writes the names of headers; who reads them does not mind.
        name = "-".join(part.capitalize() for part in f"{EXTRA_PREFIX}{escaped}".split("-"))
        told += [(name, value) for value in values]
    return told


def _whence(request: Request) -> Told:
    path = posixpath.normpath(decoded(request.path).decode(errors="surrogateescape"))
    whole = quote(path.encode(errors="surrogateescape"), safe=AS_IT_IS)
    if request.path.endswith("/") and not whole.endswith("/"):
        whole += "/"
    return [("X-Forwarded-Uri", whole), *whence(request)]


async def _upgraded(request: Request, address: Address, target: str, told: Told) -> Response:
    """The answer that joins the client with the server. Raises OSError."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    headers = [("Host", f"{host}:{address.port}"), *told]
    headers += [
        (name, value)
        for name, value in request.headers.items()
        if name.lower() in FORWARDED_UPGRADE or (name.lower() not in OURS and not says_who(name))
    ]
    try:
        theirs = await upgrade(address, request_head(request.method, target, headers))
    except Refused as refused:
        return fault(503, f"invalid upgrade response: status code {refused.status}")
    except ProtocolError as error:
        return fault(503, str(error))
    return Response(101, Joined(theirs))


class Joined:
    """An answer that takes over the client's connection and joins it with one that is upgraded already."""

    def __init__(self, theirs: Upgraded) -> None:
        self._theirs = theirs

    async def run(self, request: web.BaseRequest) -> web.StreamResponse:
        return await joined(request, self._theirs)
