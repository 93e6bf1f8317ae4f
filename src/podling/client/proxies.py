"""Which proxy leads to a server: that of the kubeconfig, else what the environment says of it, read as Go's
programs read it (`tests/peer/test_client_proxies.py` asks kubectl).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

PORTS = {"https": 443, "http": 80, "socks5": 1080, "socks5h": 1080}
SOCKS = ("socks5", "socks5h")
"""The proxy looks up names in both."""
ALL = "*"

Address = IPv4Address | IPv6Address


def of_environment(server: SplitResult, environment: Mapping[str, str]) -> SplitResult | None:
    """The proxy to this server, None for the straight way. Raises ValueError for one that cannot be used."""
    name = f"{server.scheme.upper()}_PROXY"
    given = environment.get(name) or environment.get(name.lower()) or ""
    if not given:
        return None
    if name == "HTTP_PROXY" and environment.get("REQUEST_METHOD"):
        raise ValueError("HTTP_PROXY may come from a request where REQUEST_METHOD is set: it is not used")
    bypass = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if is_direct(server.hostname or "", server.port or PORTS[server.scheme], bypass):
        return None
    try:
        found = urlsplit(given)
        if not (found.scheme and found.netloc):
            found = urlsplit(f"http://{given}")
        if not found.hostname or found.port == 0:
            raise ValueError(f"{given!r} names no host and port")
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    # Go takes for HTTP what it does not know.
    return found if found.scheme in PORTS else found._replace(scheme="http")


def is_direct(host: str, port: int, bypass: str) -> bool:
    """Whether no proxy is used: never to this machine, nor to what `bypass` (NO_PROXY) lists: names with
    those below them, `.name` for those below alone, addresses, networks, all but these with or without a
    port, or `*`."""
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = [*_entries(bypass)]
    if any(entry.host == ALL for entry in entries):
        return True
    return any(entry.holds(host, port, address) for entry in entries)


class _Entry(NamedTuple):
    """`port` is empty for any."""

    host: str
    port: str = ""

    def holds(self, host: str, port: int, address: Address | None) -> bool:
        if self.port not in ("", str(port)):
            return False
        if "/" in self.host:
            return address is not None and address in ip_network(self.host, strict=False)
        if (own := _address(self.host)) is not None:
            return address == own
        below = self.host.removeprefix(ALL)
        return host.endswith(below) if below.startswith(".") else host == below or host.endswith(f".{below}")


def _entries(bypass: str) -> Iterator[_Entry]:
    for word in bypass.lower().split(","):
        entry = word.strip()
        try:
            ip_network(entry, strict=False)
        except ValueError:
            pass
        else:
            yield _Entry(entry)
            continue
        host, colon, port = entry.rpartition(":")
        if not colon or "]" in port:
            # An address in brackets is one with a port.
            host, port = entry, ""
        elif host.startswith("["):
            host = host[1:].removesuffix("]")
        if host and "/" not in host:
            yield _Entry(host, port)


def _address(text: str) -> Address | None:
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
