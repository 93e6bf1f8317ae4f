"""Asking a server as a pod's resolver does, and showing its answers: pure but for `ask`."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from typing import NamedTuple

from podling.dns.cache import Asked, Found
from podling.dns.forward import Upstream, exchange
from podling.dns.wire import (
    AAAA,
    CNAME,
    NOERROR,
    NS,
    PTR,
    RCODES,
    SRV,
    TXT,
    TYPES,
    A,
    Record,
    encode,
    reverse_name,
    text,
)

NDOTS = 5
"""A name with as many dots is asked as it is first: what the kubelet writes into `resolv.conf`."""
SECONDS = 5.0


class Said(NamedTuple):
    """What a server said of a name; `found` is None if it said nothing. `took` in seconds."""

    name: bytes
    type: int
    found: Found | None
    took: float


def candidates(name: str, namespace: str, domain: str) -> list[bytes]:
    """The names that a pod of a namespace asks for, in turn. Raises ValueError for one too long."""
    if name.endswith("."):
        return [encode(name.lower())]
    below = [f"{name}.{search}" for search in (f"{namespace}.svc.{domain}", f"svc.{domain}", domain)]
    listed = [name, *below] if name.count(".") >= NDOTS else [*below, name]
    return [encode(one.lower()) for one in listed]


async def ask(server: Upstream, names: list[bytes], type_: int) -> list[Said]:
    """What a server says of these, until it has an answer."""
    said: list[Said] = []
    for name in names:
        began, found = time.perf_counter(), None
        try:
            async with asyncio.timeout(SECONDS):
                found = await exchange(server, Asked(name, type_, do=False, cd=False))
        except (OSError, EOFError, ValueError):
            pass  # It says nothing that can be read.
        said.append(Said(name, type_, found, time.perf_counter() - began))
        if found is not None and found.rcode == NOERROR and found.answers:
            break
    return said


def address_of(name: str) -> bytes | None:
    """The reverse name, if it is an address."""
    try:
        return reverse_name(name)
    except ValueError:
        return None


def shown(said: list[Said]) -> list[str]:
    lines: list[str] = []
    for one in said:
        what = f"{text(one.name)} {TYPES[one.type]}"
        if one.found is None:
            lines.append(f"{what}: no answer within {SECONDS:.0f} s")
            continue
        rcode = RCODES.get(one.found.rcode, str(one.found.rcode))
        none = "" if one.found.answers or one.found.rcode != NOERROR else ", but no record of this type"
        lines.append(f"{what}: {rcode}{none}, {one.took * 1000:.1f} ms")
        lines += [f"  {_line(record)}" for record in one.found.answers]
    return lines


def _line(record: Record) -> str:
    kind = TYPES.get(record.type, f"TYPE{record.type}")
    return f"{text(record.owner)} {record.ttl} {kind} {_data(record)}"


def _data(record: Record) -> str:
    data = record.data
    if record.type in (A, AAAA):
        try:
            return socket.inet_ntop(socket.AF_INET if record.type == A else socket.AF_INET6, data)
        except ValueError:
            return data.hex()
    if record.type in (NS, CNAME, PTR):
        return text(data)
    if record.type == SRV:
        priority, weight, port = struct.unpack(">HHH", data[:6])
        return f"{priority} {weight} {port} {text(data[6:])}"
    if record.type == TXT:
        parts, at = list[str](), 0
        while at < len(data):
            parts.append(f'"{data[at + 1 : at + 1 + data[at]].decode("latin-1")}"')
            at += 1 + data[at]
        return " ".join(parts)
    return data.hex()
