"""Asks webhooks over HTTPS: at a URL, or at a pod behind a Service.

No service proxy is needed: a ready endpoint is found here, and dialed with the name of the service in TLS.
Connections are kept and used again. An answer has a deadline, a size and a number of redirects that it may
not exceed.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import ssl
from typing import NamedTuple
from urllib.parse import urljoin

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from podling.apiserver.admission.plugin import Objects
from podling.model.rules.service_endpoints import NoEndpoint, endpoints_of
from podling.model.types.admissionregistration import WebhookClientConfig, WebhookServiceReference
from podling.model.types.discovery import EndpointSlice
from podling.model.types.service import Service
from podling.process.tls import connecting_context
from podling.process.waits import apart

LONGEST_ANSWER = 16 * 1024 * 1024
"""Bytes: a patch of the largest object that there can be, several times over."""
MOST_REDIRECTS = 10
REDIRECTS = frozenset({301, 302, 303, 307, 308})
KEPT_METHOD = frozenset({307, 308})
MOST_CONNECTIONS, KEPT_SECONDS = 512, 60.0
MOST_CONTEXTS = 64
JSON = "application/json"
UNREAD = "unexpected error when reading response body. Please retry. Original error: "
HTTPS = 443
HOST_MISMATCH = frozenset({62, 64})
EXPIRED = 10


choose = random.choice


class Reached(NamedTuple):
    """Where to connect, and by what name the webhook is known."""

    url: URL
    host: str
    server_name: str


class _Asked(NamedTuple):
    method: str
    url: URL
    body: bytes
    said: str
    """The URL as messages say it."""
    location: str = ""
    """What the redirect to it said."""


class HttpAnswer(NamedTuple):
    code: int
    media_type: str
    body: bytes


class CallFailed(Exception):
    """In Go's words: `Post "https://…": EOF`."""


class WebhookClient:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[bytes, ssl.SSLContext] = {}

    async def post(self, config: WebhookClientConfig, body: bytes, seconds: float) -> HttpAnswer:
        """Raises CallFailed."""
        url = f"{_named(config)}?timeout={seconds:.0f}s"
        asked, is_answered = _Asked("POST", URL(url), body, url), False
        try:
            async with asyncio.timeout(seconds):
                context = await self._context(config.ca_bundle)
                for _ in range(MOST_REDIRECTS):
                    answer = await self._exchange(config, asked, context)
                    if isinstance(answer, _Asked):
                        asked = answer
                        continue
                    is_answered = True
                    async with answer:
                        media_type = answer.headers.get("Content-Type", "")
                        return HttpAnswer(answer.status, media_type, await _read(answer))
            asked = asked._replace(said=asked.location)
            raise _Fault(f"stopped after {MOST_REDIRECTS} redirects")
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError, _Fault) as error:
            why = words_of(error, asked.url)
            if is_answered:
                raise CallFailed(f"{UNREAD}{why}") from error
            raise CallFailed(f'{asked.method.capitalize()} "{asked.said}": {why}') from error

    async def _exchange(
        self, config: WebhookClientConfig, asked: _Asked, context: ssl.SSLContext
    ) -> aiohttp.ClientResponse | _Asked:
        """The answer, whose body is to be read, or what it says to ask instead."""
        reached = self._reached(config, asked.url)
        headers = {"Host": reached.host, **({"Content-Type": JSON} if asked.body else {})}
        answer = await self._open().request(
            asked.method,
            reached.url,
            data=asked.body or None,
            headers=headers,
            ssl=context,
            server_hostname=reached.server_name,
            allow_redirects=False,
        )
        location = answer.headers.get("Location", "")
        if answer.status not in REDIRECTS or not location:
            return answer
        async with answer:
            there = URL(urljoin(str(asked.url), location))
            keeps = answer.status in KEPT_METHOD
            method, body = (asked.method, asked.body) if keeps else ("GET", b"")
            return _Asked(method, there, body, str(there), location)

    async def _context(self, bundle: bytes) -> ssl.SSLContext:
        """Raises OSError for authorities that cannot be used."""
        if bundle not in self._contexts:
            if len(self._contexts) >= MOST_CONTEXTS:
                self._contexts.clear()
            # Those of the machine take long to read.
            self._contexts[bundle] = await apart(connecting_context, bundle or None)
        return self._contexts[bundle]

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        # Made on first use: a session belongs to the event loop it is made on.
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=None),
                connector=aiohttp.TCPConnector(limit=MOST_CONNECTIONS, keepalive_timeout=KEPT_SECONDS),
                headers=CIMultiDict([("Accept", f"{JSON}, */*"), ("User-Agent", "podling")]),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def _reached(self, config: WebhookClientConfig, named: URL) -> Reached:
        """Raises _Fault for a service that has nobody to ask."""
        host = named.host or ""
        shown = host if named.port in (HTTPS, None) else f"{host}:{named.port}"
        service = config.service
        if service is None or host != f"{service.name}.{service.namespace}.svc":
            return Reached(named, shown, host)
        address, port = endpoint(self._objects, service)
        return Reached(named.with_host(address).with_port(port), shown, host)


class _Fault(Exception):
    """What is wrong, in words."""


def _named(config: WebhookClientConfig) -> str:
    """The URL: of a service by its name in the cluster."""
    service = config.service
    if service is None:
        return config.url or ""
    path = "/" + (service.path or "").lstrip("/")
    return f"https://{service.name}.{service.namespace}.svc:{service.port or HTTPS}{path}"


def endpoint(objects: Objects, wanted: WebhookServiceReference) -> tuple[str, int]:
    """The address and port of a ready endpoint of a service. Raises _Fault that says why there is none."""
    service = objects.find(Service, wanted.namespace, wanted.name)
    slices = objects.all(EndpointSlice, wanted.namespace)
    try:
        return choose(endpoints_of(wanted.name, wanted.port or HTTPS, service, slices))
    except NoEndpoint as error:
        raise _Fault(str(error)) from error


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    pieces, size = [], 0
    async for piece in answer.content.iter_any():
        size += len(piece)
        if size > LONGEST_ANSWER:
            raise _Fault(f"the answer is longer than {LONGEST_ANSWER} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def words_of(error: Exception, named: URL) -> str:
    """Go's, for what can go wrong on the way."""
    match error:
        case TimeoutError():
            return "context deadline exceeded"
        case aiohttp.ServerDisconnectedError() | ConnectionResetError() | BrokenPipeError():
            return "EOF"
        case aiohttp.ClientPayloadError():
            return "unexpected EOF"
        case aiohttp.ClientResponseError():
            return "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
        case aiohttp.NonHttpUrlClientError():
            return f'unsupported protocol scheme "{named.scheme}"'
        case aiohttp.ClientConnectorCertificateError() | ssl.SSLCertVerificationError():
            why = distrust(getattr(error, "certificate_error", error), named)
            return f"tls: failed to verify certificate: x509: {why}"
        case aiohttp.ClientConnectorDNSError() | socket.gaierror():
            return f"dial tcp: lookup {named.host}: no such host"
        case aiohttp.ClientConnectorSSLError() | ssl.SSLError():
            return f"tls: {getattr(error, 'os_error', error)}"
        case aiohttp.ClientConnectorError() | ConnectionError():
            return (
                f"dial tcp {named.host}:{named.port}: connect: {failure(getattr(error, 'os_error', error))}"
            )
    return str(error)


def failure(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else str(error)


def distrust(error: Exception, named: URL) -> str:
    code = getattr(error, "verify_code", 0)
    if code in HOST_MISMATCH:
        return f"certificate is not valid for {named.host}"
    if code == EXPIRED:
        return "certificate has expired or is not yet valid"
    return "certificate signed by unknown authority"
