"""How the parts of the cluster are: what `componentstatuses` tells.

As in kube-apiserver, scheduler and controllers are asked on this machine, at the ports of Kubernetes' own;
those that run in this process are as healthy as it is. `etcd-0` is the storage.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing

from podling.model.types.core import ComponentCondition, ComponentStatus
from podling.model.types.meta import ObjectMeta
from podling.process.tls import connecting_context
from podling.storage.interface import Storage, StorageClosedError

HOST = "127.0.0.1"
PORTS = {"controller-manager": 10257, "scheduler": 10259}
STORAGE = "etcd-0"
LONGEST = 20.0
"""Seconds to wait for one part, as in kube-apiserver."""
LONGEST_ANSWER = 4096
"""Bytes of an answer that are read."""
FINE = "ok"

Check = Callable[[], Awaitable[str]]
"""Returns what a part says of itself. Raises NotHealthy."""
Components = Mapping[str, Check]


class NotHealthy(Exception):
    """The message says why."""


def components(storage: Storage, *, is_whole: bool) -> Components:
    """`is_whole`: whether scheduler and controllers run in this process."""

    async def stores() -> str:
        try:
            await storage.probe()
        except StorageClosedError as error:
            raise NotHealthy(str(error)) from error
        return FINE

    async def here() -> str:
        return FINE

    others = {name: here if is_whole else _at(port) for name, port in PORTS.items()}
    return {**others, STORAGE: stores}


async def component(name: str, check: Check) -> ComponentStatus:
    try:
        health = ComponentCondition(type="Healthy", status="True", message=await check())
    except NotHealthy as why:
        health = ComponentCondition(type="Healthy", status="False", message=str(why))
    return ComponentStatus(metadata=ObjectMeta(name=name), conditions=[health])


def _at(port: int) -> Check:
    async def ask() -> str:
        url = f"https://{HOST}:{port}/healthz"
        try:
            async with asyncio.timeout(LONGEST):
                status, body = await _get(port)
        except TimeoutError as error:
            raise NotHealthy(f'Get "{url}": context deadline exceeded') from error
        except ConnectionRefusedError as error:
            why = f"dial tcp {HOST}:{port}: connect: {os.strerror(error.errno or 0).lower()}"
            raise NotHealthy(f'Get "{url}": {why}') from error
        except (OSError, ValueError, EOFError) as error:
            raise NotHealthy(f'Get "{url}": {error}') from error
        if status != b"200":
            raise NotHealthy(body)
        return body

    return ask


async def _get(port: int) -> tuple[bytes, str]:
    """Status and body of `/healthz`. Raises OSError, ValueError, EOFError."""
    reader, writer = await asyncio.open_connection(HOST, port, ssl=connecting_context(verify=False))
    with closing(writer):
        writer.write(b"GET /healthz HTTP/1.0\r\nHost: %b\r\nAccept: */*\r\n\r\n" % HOST.encode())
        _, status, *_ = (await reader.readuntil(b"\r\n\r\n")).split(maxsplit=2)
        return status, (await reader.read(LONGEST_ANSWER)).decode(errors="replace")
