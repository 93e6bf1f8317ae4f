"""HTTP GET as probes and hooks do it: no certificate is verified, no connection kept, little of a body read.

A redirect is followed as long as it stays on the host that was asked: another host's health says nothing of
this container.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from podling.kubelet.probes.outcome import ProbeError, address, dial_failure
from podling.kubelet.probes.ports import port_number
from podling.model.container import EphemeralContainerCommon, HTTPGetAction

BODY_LIMIT = 10 * 1024
REDIRECT_LIMIT = 10
_REDIRECTS = (301, 302, 303, 307, 308)
_ADDED_UNASKED = ("Accept-Encoding", "User-Agent", "Accept")


class HttpAnswer(NamedTuple):
    status: int
    body: str


class HttpFailure(Exception):
    """No answer came."""


def request_url(action: HTTPGetAction, container: EphemeralContainerCommon, pod_ip: str) -> URL:
    """Raises ProbeError when the action names a port or host that cannot be."""
    port = port_number(action.port, container)
    path = action.path if action.path.startswith("/") else f"/{action.path}"
    where = address(action.host or pod_ip, port)
    try:
        return URL(f"{(action.scheme or 'HTTP').lower()}://{where}{path}")
    except ValueError as error:
        raise ProbeError(str(error)) from error


def request_headers(action: HTTPGetAction, user_agent: str) -> CIMultiDict[str]:
    headers = CIMultiDict((header.name, header.value) for header in action.http_headers)
    headers.setdefault("User-Agent", user_agent)
    headers.setdefault("Accept", "*/*")
    for name in ("User-Agent", "Accept"):
        # Given empty, they are not to be sent at all.
        if not headers[name]:
            del headers[name]
    return headers


async def http_get(url: URL, headers: CIMultiDict[str], timeout: float | None) -> HttpAnswer:
    """Raises HttpFailure. A redirect elsewhere, as every redirect too many, is itself the answer or a
    failure."""
    try:
        async with asyncio.timeout(timeout):
            return await _follow(url, headers)
    except TimeoutError:
        why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    except aiohttp.ClientConnectorError as error:
        why = dial_failure(error.host, error.port or 0, error.os_error)
    except aiohttp.ServerDisconnectedError:
        why = "EOF"
    except (aiohttp.ClientError, OSError, ValueError) as error:
        why = str(error)
    raise HttpFailure(f'Get "{url}": {why}')


async def _follow(url: URL, headers: CIMultiDict[str]) -> HttpAnswer:
    connector = aiohttp.TCPConnector(ssl=False, force_close=True)
    async with aiohttp.ClientSession(connector=connector, skip_auto_headers=_ADDED_UNASKED) as session:
        for _ in range(REDIRECT_LIMIT):
            async with session.get(url, headers=headers, allow_redirects=False) as answer:
                target = _redirect(url, answer)
                if target is None:
                    body = await answer.content.read(BODY_LIMIT)
                    return HttpAnswer(answer.status, body.decode(errors="replace"))
            url = target
    raise ValueError(f"stopped after {REDIRECT_LIMIT} redirects")


def _redirect(url: URL, answer: aiohttp.ClientResponse) -> URL | None:
    location = answer.headers.get("Location")
    if answer.status not in _REDIRECTS or not location:
        return None
    target = url.join(URL(location))
    return target if target.host == url.host else None
