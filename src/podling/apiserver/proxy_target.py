"""Whom `proxy` of a node, a pod or a service means: from the name in the path and the object to an address.
Pure.

The name may carry a scheme and a port, `https:web:8443`; what it leaves open, the object says.
"""

from __future__ import annotations

import ipaddress
import posixpath
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote

from podling.apiserver.kubelet_location import kubelet_address
from podling.apiserver.request import RequestInfo, decoded
from podling.model.errors import StatusError, bad_request
from podling.model.node import Node
from podling.model.pod import Pod
from podling.model.service import Endpoints, Service

AS_IT_IS = "$&+,/:;=@"
"""What Go leaves in a path, beside letters, digits and `-_.~`; the rest is escaped."""
DEFAULT_PORTS = {"http": 80, "https": 443}


class Asked(NamedTuple):
    """A name taken apart: no scheme or port is "" when it has none."""

    scheme: str
    name: str
    port: str


class Target(NamedTuple):
    """`kubelet`: it is known by its certificate, and knows us by ours."""

    scheme: str
    host: str
    port: int
    kubelet: bool = False


def asked_of(name: str, what: str) -> Asked:
    """Raises StatusError 400."""
    parts = name.split(":")
    if len(parts) == 1 and parts[0]:
        return Asked("", parts[0], "")
    if len(parts) == 2 and parts[0]:
        return Asked("", parts[0], parts[1])
    if len(parts) == 3 and parts[1] and parts[0] in ("", "http", "https"):
        return Asked(*parts)
    raise bad_request(f'invalid {what} request "{name}"')


def path_below(path: str, info: RequestInfo) -> str:
    """What follows `proxy`, as Kubernetes passes it on; "" when not even a slash does.

    It is decoded, cleaned of `//`, `.` and `..`, and encoded again, so that nobody reads it another way.
    """
    whole = decoded(path)
    if not info.rest:
        return "/" if whole.endswith(b"/") else ""
    rest = b"/".join(whole.strip(b"/").split(b"/")[-len(info.rest) :])
    below = posixpath.normpath(b"/" + rest.lstrip(b"/"))
    if whole.endswith(b"/") and below != b"/":
        below += b"/"
    return quote(below, safe=AS_IT_IS)


def node_target(asked: Asked, node: Node) -> Target:
    """The kubelet, unless another port is named. Raises StatusError."""
    host, port = kubelet_address(node)
    if asked.port in ("", str(port)):
        return Target("https", host, port, kubelet=True)
    return _reachable(asked.scheme, host, _number(asked.port))


def pod_target(asked: Asked, pod: Pod) -> Target:
    """Its first port that is declared, unless one is named. Raises StatusError."""
    declared = (port.container_port for container in pod.spec.containers for port in container.ports)
    scheme = asked.scheme or "http"
    port = _number(asked.port) if asked.port else next(declared, DEFAULT_PORTS[scheme])
    return _reachable(scheme, pod.status.pod_ip, port)


def service_target(asked: Asked, service: Service, endpoints: Endpoints) -> Target:
    """One of its ready endpoints, whichever. Raises StatusError 503."""
    name = service.metadata.name
    port = _port_name(asked.port, service)
    choices = list(_ready(endpoints, port, any_port=not asked.port))
    if not choices:
        raise StatusError(503, "ServiceUnavailable", f'no endpoints available for service "{name}"')
    host, number = random.choice(choices)
    return _reachable(asked.scheme, host, number)


def _port_name(asked: str, service: Service) -> str:
    """A port may be named by its number, too."""
    if asked.isdigit():
        for port in service.spec.ports:
            if port.port == int(asked):
                return port.name
        message = f'no service port {asked} found for service "{service.metadata.name}"'
        raise StatusError(503, "ServiceUnavailable", message)
    return asked


def _ready(endpoints: Endpoints, port: str, *, any_port: bool) -> Iterator[tuple[str, int]]:
    for subset in endpoints.subsets:
        numbers: Sequence[int] = [
            found.port
            for found in subset.ports
            if found.name == port or (any_port and len(subset.ports) == 1)
        ]
        for number in numbers[:1]:
            yield from ((address.ip, number) for address in subset.addresses)


def _reachable(scheme: str, host: str, port: int) -> Target:
    """Raises StatusError 400 for an address that is this machine's own business."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise bad_request("address not allowed") from None
    if address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
        raise bad_request("address not allowed")
    return Target(scheme or "http", host, port)


def _number(port: str) -> int:
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise bad_request(f'invalid port "{port}"')
    return int(port)
