"""How to reach kubelets: the address of one, the path of a request to it, and the connection.

A Node says where its kubelet listens. A kubelet of the same process is connected to directly, any other over
TLS (docs/decisions/024). The path and query to ask the kubelet for follow, purely, from the pod and the
options of the request; refusals have the messages of Kubernetes' pod strategy.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.tracing import Trace

from podling.apiserver.request.request import Query, flag, number
from podling.apiserver.rules import field
from podling.model.errors import StatusError, bad_request, invalid
from podling.model.rules.resources import volume_containers
from podling.model.time import TimeError, settled
from podling.model.types.container import EphemeralContainerCommon
from podling.model.types.node import Node
from podling.model.types.pod import Pod
from podling.streaming.driver import Connect, keep_alive
from podling.streaming.upgrade import Address

Parameters = Sequence[tuple[str, str]]

_ADDRESS_TYPES = ("InternalIP", "Hostname", "InternalDNS", "ExternalDNS", "ExternalIP")
_KUBELET_STREAMS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
_LOG_FLAGS = ("follow", "previous", "timestamps")
_LOG_NUMBERS = {"tailLines": 0, "limitBytes": 1, "sinceSeconds": 1}
"""The smallest value allowed for each, in the order in which they are judged."""


class Kubelets:
    """Connects to kubelets. `tls` gives what has the client certificate by which kubelets know the API
    server."""

    def __init__(self, tls: Callable[[], ssl.SSLContext]) -> None:
        self._tls = tls
        self._within: dict[tuple[str, int], Connect] = {}

    @contextmanager
    def join(self, host: str, port: int, connect: Connect) -> Iterator[None]:
        """While the block runs, use `connect` for the kubelet at this address."""
        self._within[host, port] = connect
        try:
            yield
        finally:
            del self._within[host, port]

    def at(self, host: str, port: int) -> Address:
        return Address(host, port, self._tls(), within=self._within.get((host, port)))


def http_connector(address: Address) -> aiohttp.BaseConnector:
    """For one plain request."""
    if address.within is not None:
        return _WithinConnector(address.within)
    return aiohttp.TCPConnector(ssl=address.tls or True, socket_factory=_kept_alive)


def _kept_alive(address: tuple[Any, ...]) -> socket.socket:
    """A socket for an address as `getaddrinfo` gives it."""
    family, kind, protocol, *_ = address
    connection = socket.socket(family, kind, protocol)
    keep_alive(connection)
    return connection


class _WithinConnector(aiohttp.BaseConnector):
    """An aiohttp connector that gets its connection from a function; aiohttp's own for other kinds of sockets
    override the same method."""

    def __init__(self, connect: Connect) -> None:
        super().__init__(force_close=True)
        self._connect_within = connect

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        made = self._factory()
        await self._connect_within(lambda: made)
        return made


def kubelet_address(node: Node) -> tuple[str, int]:
    """Host and port of the kubelet. Raises StatusError for a node that has no address or port in
    its status."""
    port = node.status.daemon_endpoints.kubelet_endpoint.port
    by_type = {address.type: address.address for address in reversed(node.status.addresses)}
    for kind in _ADDRESS_TYPES:
        if by_type.get(kind) and port:
            return by_type[kind], port
    raise StatusError(500, "", f"no preferred addresses found; known addresses: {sorted(by_type)}")


def kubelet_target(pod: Pod, subresource: str, query: Query) -> str:
    """The path and query to request from the kubelet. Raises StatusError."""
    parameters = {
        "log": log_parameters,
        "exec": exec_parameters,
        "attach": attach_parameters,
        "portforward": port_parameters,
    }[subresource](pod.metadata.name, query)
    verb = {"log": "containerLogs", "portforward": "portForward"}.get(subresource, subresource)
    parts = [verb, pod.metadata.namespace, pod.metadata.name]
    if subresource != "portforward":
        parts.append(chosen_container(pod, query.get("container", ("",))[0]))
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    return f"{path}?{urlencode(parameters)}" if parameters else path


def chosen_container(pod: Pod, name: str) -> str:
    """The container named; may be empty if the pod has only one. Raises StatusError 400."""
    spec = pod.spec
    if name:
        lists: Sequence[Sequence[EphemeralContainerCommon]] = (
            volume_containers(spec),
            spec.init_containers,
            spec.containers,
            spec.ephemeral_containers,
        )
        if all(container.name != name for containers in lists for container in containers):
            raise bad_request(f"container {name} is not valid for pod {pod.metadata.name}")
        return name
    if len(spec.containers) == 1:
        return spec.containers[0].name
    names = " ".join(
        one.name for one in (*spec.init_containers, *spec.containers, *spec.ephemeral_containers)
    )
    message = f"a container name must be specified for pod {pod.metadata.name}, choose one of: [{names}]"
    raise bad_request(message)


def stream_parameters(pod: str, query: Query) -> Parameters:
    return [(kubelet, "1") for api, kubelet in _KUBELET_STREAMS.items() if flag(query, api)]


def attach_parameters(pod: str, query: Query) -> Parameters:
    """The query of an attach. podling's own parameters are `replay=true` (first all earlier output) and
    `exitCode=true` (at the end the container's exit code, also if it has ended already)."""
    own = [(name, "1") for name in ("replay", "exitCode") if flag(query, name)]
    return [*stream_parameters(pod, query), *own]


def exec_parameters(pod: str, query: Query) -> Parameters:
    return [*stream_parameters(pod, query), *(("command", word) for word in query.get("command", ()))]


def port_parameters(pod: str, query: Query) -> Parameters:
    return [("port", port) for port in query.get("ports", ())]


def log_parameters(pod: str, query: Query) -> Parameters:
    """The query of a log. Raises StatusError 400 for a malformed number or time, 422 for contradictory
    options."""
    since = query.get("sinceTime", ("",))[0]
    try:
        since = settled(since, "date-time") if since else ""
    except TimeError as error:
        raise bad_request(str(error)) from error
    numbers = {name: number(query[name][0]) for name in _LOG_NUMBERS if name in query}
    faults = {
        name: field.invalid(name, asked, f"must be greater than {'or equal to 0' if least == 0 else '0'}")
        for name, least in _LOG_NUMBERS.items()
        if (asked := numbers.get(name, least)) < least
    }
    if "sinceTime" in query and "sinceSeconds" in numbers:
        why = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        faults["sinceSeconds"] = field.forbidden("[]", why)
    causes = [faults[name] for name in _LOG_NUMBERS if name in faults]
    if "stream" in query:
        # Behind a gate of Kubernetes that is off.
        causes.append(field.forbidden("stream", "may not be specified"))
    if causes:
        raise invalid("PodLogOptions", pod, causes)
    parameters = [(name, "true") for name in _LOG_FLAGS if flag(query, name)]
    parameters += [(name, str(asked)) for name, asked in numbers.items()]
    if since:
        parameters.append(("sinceTime", since))
    return parameters
