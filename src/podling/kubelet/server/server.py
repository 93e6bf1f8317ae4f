"""The kubelet's HTTPS server, with the paths that Kubernetes' API server uses, its TLS, and its
authorization.

A client needs a certificate of the cluster's authority or a bearer token, whose owner the API server tells by
a TokenReview; clients in this process are connected by `joined`. Who may do what is asked of the API server
with a SubjectAccessReview. Both are what Kubernetes calls webhooks, and the answers are cached. Errors are
plain text with the kubelet's status codes; the API server makes a Status of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

from aiohttp import web

from podling.client.client import Client
from podling.kubelet.pod.host import HTTPRefusal, PodHost
from podling.kubelet.server.exec import StreamHandlers
from podling.kubelet.server.log_requests import LogHandler
from podling.kubelet.server.pages import json_page, pod_list
from podling.model.errors import StatusError
from podling.model.time import Clock
from podling.model.types.authentication import TokenReview, TokenReviewSpec
from podling.model.types.authorization import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from podling.model.types.rbac import AUTHENTICATED, MASTERS
from podling.process.tls import followed_context, lifetime, listening_context, verified_chain
from podling.streaming.driver import Connect, connect_within, keep_alive
from podling.streaming.negotiation import Unacceptable
from podling.streaming.wire import Disconnected

YES_IS_KEPT, NO_IS_KEPT = timedelta(minutes=5), timedelta(seconds=30)
OWNER_IS_KEPT = timedelta(minutes=2)
KEPT = 1_000
"""How many answers are cached; when there are more, all are dropped."""
HEADER_LIMIT = 1 << 20
"""An exec names its command in the URL."""
SHUTDOWN_GRACE = 1.0
"""Seconds that streams have to end when the server stops."""
VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
ALONE = {
    "stats": "stats",
    "metrics": "metrics",
    "logs": "log",
    "checkpoint": "checkpoint",
    "statusz": "statusz",
    "flagz": "configz",
}
FINE = {"pods": "pods", "runningpods": "pods", "healthz": "healthz", "configz": "configz"}
"""The first element of a path → the subresource of nodes that RBAC checks. Those in FINE may also be allowed
by `proxy` (KubeletFineGrainedAuthz)."""

log = logging.getLogger(__name__)


Allowed = Callable[[str, tuple[str, ...], str, Sequence[str]], Awaitable[bool]]
"""`NodeAccess.allows`: user, groups, verb, subresources."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


OwnerOf = Callable[[str], Awaitable["Peer | None"]]
"""`NodeAccess.owner_of`: the user of a bearer token."""


class Peer(NamedTuple):
    """The client: user (CN) and groups (O) of its certificate, or those of its token."""

    user: str
    groups: tuple[str, ...]


class Question(NamedTuple):
    """What a SubjectAccessReview answers: may the user do this to a subresource of the node?"""

    user: str
    groups: tuple[str, ...]
    verb: str
    subresource: str


class NodeAccess:
    """Authenticates tokens with TokenReviews and authorizes users with SubjectAccessReviews, and caches the
    answers."""

    def __init__(self, client: Client, node_name: str, clock: Clock) -> None:
        self._client = client
        self._node = node_name
        self._clock = clock
        self._answers: dict[Question, tuple[bool, datetime]] = {}
        self._owners: dict[bytes, tuple[Peer | None, datetime]] = {}
        """By digest of the token: strangers send tokens of any length."""

    async def owner_of(self, token: str) -> Peer | None:
        """The user of a bearer token; None if it is nobody's. Raises StatusError or OSError if the API server
        does not answer."""
        digest = hashlib.sha256(token.encode()).digest()
        owner, until = self._owners.get(digest, (None, self._clock.now()))
        if self._clock.now() >= until:
            review = TokenReview(spec=TokenReviewSpec(token=token))
            status = (await self._client.create(review)).status
            user = status.user
            owner = Peer(user.username, tuple(user.groups)) if status.authenticated else None
            if len(self._owners) >= KEPT:
                self._owners.clear()
            self._owners[digest] = owner, self._clock.now() + OWNER_IS_KEPT
        return owner

    async def allows(
        self, user: str, groups: tuple[str, ...], verb: str, subresources: Sequence[str]
    ) -> bool:
        """Whether the user may `verb` any of these subresources of the node. Raises StatusError or OSError if
        the API server does not answer."""
        if MASTERS in groups:
            return True
        for subresource in subresources:
            question = Question(user, groups, verb, subresource)
            allowed, until = self._answers.get(question, (False, self._clock.now()))
            if self._clock.now() >= until:
                what = ResourceAttributes(
                    verb=verb, version="v1", resource="nodes", subresource=subresource, name=self._node
                )
                spec = SubjectAccessReviewSpec(resource_attributes=what, user=user, groups=list(groups))
                allowed = (await self._client.create(SubjectAccessReview(spec=spec))).status.allowed
                if len(self._answers) >= KEPT:
                    self._answers.clear()
                kept = YES_IS_KEPT if allowed else NO_IS_KEPT
                self._answers[question] = allowed, self._clock.now() + kept
            if allowed:
                return True
        return False


def server_tls(certificate: Path, key: Path, client_ca: Path) -> ssl.SSLContext:
    """Clients may present a certificate; one of another authority ends the handshake, none, or one out of its
    time, is answered 401. Files that were replaced are used from the next handshake on. Raises OSError or
    ValueError when they cannot be; names them.
    """
    # No API server comes back with a ticket of its session.
    made = partial(listening_context, certificate, key, (client_ca,), tickets=0)
    return followed_context((certificate, key, client_ca), made)


PeerOf = Callable[[web.Request], Peer | None]


async def nobody(token: str) -> Peer | None:
    """For a server that takes no tokens."""
    return None


class KubeletServer:
    """The server of one kubelet: `allowed` decides about each request, `owner_of` says whose a token is, and
    `host` has what it shows."""

    def __init__(self, host: PodHost, clock: Clock, allowed: Allowed, owner_of: OwnerOf = nobody) -> None:
        self._host = host
        self._clock = clock
        self._allowed = allowed
        self._owner_of = owner_of
        self._stops = asyncio.Event()
        self._logs = LogHandler(host, clock, self._stops.wait)
        self._streams = StreamHandlers(host, self._stops.wait)

    @asynccontextmanager
    async def listening(self, listener: socket.socket, tls: ssl.SSLContext) -> AsyncIterator[int]:
        """Serve the connections of `listener` while the block runs, and close it then. Gives its port."""
        async with self._answering(self._certified) as runner:
            keep_alive(listener)
            site = web.SockSite(runner, listener, ssl_context=tls)
            await site.start()
            yield runner.addresses[0][1]

    @asynccontextmanager
    async def joined(self, peer: Peer) -> AsyncIterator[Connect]:
        """Serve connections of this process as `peer` while the block runs. Gives the way to connect."""
        async with self._answering(lambda request: peer) as runner:
            assert runner.server is not None
            yield partial(connect_within, runner.server)

    @asynccontextmanager
    async def _answering(self, peer_of: PeerOf) -> AsyncIterator[web.AppRunner]:
        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                await self._authorize(request, peer_of(request))
                return await handler(request)
            except HTTPRefusal as refusal:
                return refusal.response()
            except Unacceptable as error:
                return HTTPRefusal(error.status, f"{error.message}\n", error.headers).response()
            except Disconnected:
                return web.Response(status=500)

        async def say_that_it_stops(application: web.Application) -> None:
            self._stops.set()

        application = web.Application(middlewares=[guarded])
        application.on_shutdown.append(say_that_it_stops)
        for method, path, handler in self._routes():
            application.router.add_route(method, path, handler)
        runner = web.AppRunner(
            application,
            handler_cancellation=True,
            access_log=None,
            shutdown_timeout=SHUTDOWN_GRACE,
            max_line_size=HEADER_LIMIT,
            max_field_size=HEADER_LIMIT,
        )
        await runner.setup()
        try:
            yield runner
        finally:
            await runner.cleanup()

    def _routes(self) -> Iterator[tuple[str, str, Handler]]:
        async def healthz(request: web.Request) -> web.StreamResponse:
            return web.Response(text="ok")

        async def pods(request: web.Request) -> web.StreamResponse:
            return json_page(pod_list(self._host.pods()))

        for path in ("/healthz", "/healthz/ping", "/healthz/log", "/healthz/syncloop"):
            yield "GET", path, healthz
        for path in ("/pods", "/pods/"):
            yield "GET", path, pods
        for path, page in self._host.pages.items():
            yield "GET", path, page
        yield "GET", "/containerLogs/{namespace}/{pod}/{container}", self._logs.container_logs
        for method in ("GET", "POST"):
            for uid in ("", "/{uid}"):
                yield method, f"/exec/{{namespace}}/{{pod}}{uid}/{{container}}", self._streams.exec
                yield method, f"/attach/{{namespace}}/{{pod}}{uid}/{{container}}", self._streams.attach
                yield method, f"/portForward/{{namespace}}/{{pod}}{uid}", self._streams.port_forward

    def _certified(self, request: web.Request) -> Peer | None:
        """As the API server takes it: the last name counts, and who has none, or shows what is out of its
        time, is nobody."""
        certificate = request.get_extra_info("peercert")
        if not certificate:
            return None
        if not lifetime(verified_chain(request.get_extra_info("ssl_object"))).has(self._clock.now()):
            return None
        said = [pair for names in certificate["subject"] for pair in names]
        user = next((value for kind, value in reversed(said) if kind == "commonName"), "")
        groups = (value for kind, value in said if kind == "organizationName")
        return Peer(user, (*groups, AUTHENTICATED)) if user else None

    async def _authorize(self, request: web.Request, peer: Peer | None) -> None:
        """Raises HTTPRefusal."""
        scheme, _, token = request.headers.get("Authorization", "").strip().partition(" ")
        if peer is None and scheme.lower() == "bearer" and token:
            try:
                peer = await self._owner_of(token)
            except (StatusError, OSError) as error:
                log.warning("nobody can say whose a token is: %s", error)
        if peer is None:
            raise HTTPRefusal(401, "Unauthorized")
        verb = verb_of(request.method)
        asked = subresources(request.path)
        what = f"(user={peer.user}, verb={verb}, resource=nodes, subresource(s)=[{' '.join(asked)}])"
        try:
            allowed = await self._allowed(peer.user, peer.groups, verb, asked)
        except (StatusError, OSError) as error:
            log.warning("nobody can say whether this is allowed: %s: %s", what, error)
            raise HTTPRefusal(500, f"Authorization error {what}") from error
        if not allowed:
            raise HTTPRefusal(403, f"Forbidden {what}\n")


def verb_of(method: str) -> str:
    """What RBAC calls a method; empty for one that it does not know."""
    return VERBS.get(method, "")


def subresources(path: str) -> tuple[str, ...]:
    """The subresources of nodes that a path belongs to: being allowed any of them is enough."""
    first = path.split("/")[1]
    if first in ALONE:
        return (ALONE[first],)
    return (FINE[first], "proxy") if first in FINE else ("proxy",)
