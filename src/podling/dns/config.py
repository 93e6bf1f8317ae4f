"""Which servers are asked for names outside the cluster: by options, and by the ConfigMap `kube-dns` in
`kube-system`, with the keys and JSON values that kube-dns reads (docs/decisions/112).

    stubDomains: '{"corp.example": ["10.0.0.53"]}'
    upstreamNameservers: '["192.0.2.53", "192.0.2.54:5353"]'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from podling.dns.forward import ForwardOptions
from podling.dns.server import PORT
from podling.dns.wire import encode
from podling.dns.zone import DNS_NAMESPACE, DNS_SERVICE
from podling.model.rules.addresses import address_and_port
from podling.model.types.core import ConfigMap

STUBS, UPSTREAM = "stubDomains", "upstreamNameservers"

T = TypeVar("T")


def configured(options: ForwardOptions, given: ConfigMap) -> ForwardOptions:
    """The options with what a ConfigMap says in their place: its `upstreamNameservers`, and each of its
    `stubDomains`. Raises ValueError, which names the key, for what cannot be read."""
    stubs = _read(given, STUBS, dict[str, list[str]], _check_stubs)
    servers = _read(given, UPSTREAM, list[str], _check_servers)
    return msgspec.structs.replace(
        options, servers=servers or options.servers, stubs={**options.stubs, **(stubs or {})}
    )


def _read(given: ConfigMap, key: str, type_: type[T], check: Callable[[T], None]) -> T | None:
    text = given.data.get(key, "")
    if not text.strip():
        return None
    try:
        found = msgspec.json.decode(text, type=type_)
        check(found)
    except ValueError as error:
        raise ValueError(f"{key} of the ConfigMap {DNS_NAMESPACE}/{DNS_SERVICE}: {error}") from error
    return found


def _check_stubs(stubs: dict[str, list[str]]) -> None:
    for domain, servers in stubs.items():
        encode(domain)
        if not domain.strip("."):
            raise ValueError(f"the root is no stub domain: {UPSTREAM} has its servers")
        if not servers:
            raise ValueError(f"{domain} has no servers")
        _check_servers(servers)


def _check_servers(servers: list[str]) -> None:
    for server in servers:
        address_and_port(server, PORT)
