"""Upgrades the client's connection and connects to the runtime's streaming URL, for exec, attach,
port-forward.

The runtime is asked first, so that its refusal can still be an HTTP error. To the runtime the protocol is
always SPDY/3.1 with v4 channels; to the client it is whatever was negotiated.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from aiohttp import web

from podling.kubelet.pod.host import Signal
from podling.kubelet.server.relay import (
    CommandStreams,
    Dialect,
    leave,
    relay_command,
    relay_ports,
    tell_failure,
)
from podling.kubelet.server.replay import relay_ended, relay_replay
from podling.kubelet.server.replay_output import Replay
from podling.streaming import negotiation, upgrade
from podling.streaming.negotiation import Accepted
from podling.streaming.session import Session
from podling.streaming.spdy.connection import SpdyWire
from podling.streaming.takeover import taken_over
from podling.streaming.websocket import channels, tunnel
from podling.streaming.wire import Wire

COMMAND_SPDY = {
    "v4.channel.k8s.io": Dialect(resize=True, status=True),
    "v3.channel.k8s.io": Dialect(resize=True, status=False),
    "v2.channel.k8s.io": Dialect(resize=False, status=False),
    "channel.k8s.io": Dialect(resize=False, status=False),
}
COMMAND_PROTOCOL = "v4.channel.k8s.io"
PORT_PROTOCOL = "portforward.k8s.io"
REFUSED_AFTER_UPGRADE = frozenset({"v5.channel.k8s.io"})
"""For these protocols Kubernetes' API server upgrades the connection before it asks the kubelet, so errors go
to the error stream. Others get an HTTP error."""
PORT_WEBSOCKET = (tunnel.SUBPROTOCOL, *channels.PORT_SUBPROTOCOLS)


class Unreachable(Exception):
    """The runtime's streaming URL could not be used."""


def negotiate_command(headers: negotiation.RequestHeaders) -> Accepted:
    return negotiation.negotiate(headers, spdy=tuple(COMMAND_SPDY), websocket=tuple(channels.SUBPROTOCOLS))


def negotiate_ports(headers: negotiation.RequestHeaders) -> Accepted:
    return negotiation.negotiate(headers, spdy=(PORT_PROTOCOL,), websocket=PORT_WEBSOCKET)


async def serve_command(
    request: web.BaseRequest,
    accepted: Accepted,
    runtime: Session,
    wanted: CommandStreams,
    kubelet_stops: Signal,
    stopping: Signal | None = None,
    replay: Replay | None = None,
) -> web.StreamResponse:
    """Join the client to an exec or attach; with `replay`, first show what was printed before."""
    wire, dialect = _command_wire(accepted, wanted)
    client = Session(wire)
    try:
        replayed = {negotiation.REPLAYED: "true"} if replay else {}
        async with taken_over(request, {**accepted.headers, **replayed}, client) as response:
            try:
                if replay is None:
                    await relay_command(client, runtime, wanted, dialect, kubelet_stops, stopping)
                else:
                    await relay_replay(client, runtime, wanted, dialect, kubelet_stops, replay)
            finally:
                # While the connection is taken over: after it aiohttp lets nothing be waited for.
                await leave(runtime)
        return response
    finally:
        runtime.drop()


async def serve_ended(
    request: web.BaseRequest, accepted: Accepted, wanted: CommandStreams, replay: Replay
) -> web.StreamResponse:
    """Shows the client what a container printed, and how it ended."""
    wire, dialect = _command_wire(accepted, wanted)
    client = Session(wire)
    headers = {**accepted.headers, negotiation.REPLAYED: "true"}
    async with taken_over(request, headers, client) as response:
        await relay_ended(client, wanted, dialect, replay)
    return response


async def refuse_command(
    request: web.BaseRequest, accepted: Accepted, wanted: CommandStreams, why: str
) -> web.StreamResponse:
    """Tells a client that has been upgraded why there is nothing to join it to."""
    wire, dialect = _command_wire(accepted, wanted)
    client = Session(wire)
    async with taken_over(request, accepted.headers, client) as response:
        await tell_failure(client, f"unable to upgrade connection: {why}", dialect)
    return response


async def serve_ports(
    request: web.BaseRequest,
    accepted: Accepted,
    runtime: Session,
    forwarded: Sequence[int],
    *ends: Signal,
) -> web.StreamResponse:
    """Join the client to a port-forward, until one of `ends` completes. `forwarded` are the ports of a client
    that speaks WebSocket channels."""
    wire: Wire = SpdyWire(client=False)
    streams: int | None = None
    if accepted.protocol == tunnel.SUBPROTOCOL:
        wire = tunnel.TunnelWire(client=False)
    elif accepted.websocket:
        wire, streams = channels.PortWire(accepted.protocol, forwarded), 2 * len(forwarded)
    client = Session(wire)
    try:
        async with taken_over(request, accepted.headers, client) as response:
            await relay_ports(client, runtime, *ends, streams=streams)
        return response
    finally:
        runtime.drop()


def _command_wire(accepted: Accepted, wanted: CommandStreams) -> tuple[Wire, Dialect]:
    if not accepted.websocket:
        return SpdyWire(client=False), COMMAND_SPDY[accepted.protocol]
    subprotocol = channels.SUBPROTOCOLS[accepted.protocol]
    # The stream to send an empty message on first, as Kubernetes does. Clients of v5 (Go's) need none, and
    # before 1.34 log an error if it comes before they have made their streams.
    outputs = [name for name in wanted.types(resize=False) if name in ("stdout", "stderr")]
    greeting = "" if subprotocol.half_close else next(iter(outputs), "error")
    wire = channels.ChannelWire(subprotocol, client=False, greeting=greeting)
    return wire, Dialect(resize=True, status=subprotocol.status)


async def connect(url: str, protocol: str) -> Session:
    """The runtime's end. Raises Unreachable."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise Unreachable(f"cannot stream from {url!r}")
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    head = upgrade.request_head(
        "POST",
        target,
        [
            ("Host", parts.netloc),
            ("Connection", "Upgrade"),
            ("Upgrade", negotiation.SPDY),
            (negotiation.PROTOCOL_VERSION, protocol),
            ("Content-Length", "0"),
        ],
    )
    try:
        upgraded = await upgrade.upgrade(upgrade.Address(parts.hostname, parts.port or 80), head)
    except (OSError, upgrade.Refused) as error:
        raise Unreachable(str(error)) from error
    session = Session(SpdyWire(client=True))
    upgraded.hand_to(session)
    return session


def parse_ports(asked: Sequence[str], accepted: Accepted) -> list[int]:
    """The ports of a client that speaks WebSocket channels; others name a port with each connection.

    Raises Unacceptable.
    """
    if not accepted.websocket or accepted.protocol == tunnel.SUBPROTOCOL:
        return []
    words = [word for value in asked for word in value.split(",")]
    if not words:
        raise negotiation.Unacceptable(400, 'query parameter "port" is required')
    for word in words:
        if not word:
            raise negotiation.Unacceptable(400, 'query parameter "port" cannot be empty')
        if not word.isdecimal() or int(word) > 65535:
            raise negotiation.Unacceptable(400, f'unable to parse "{word}" as a port')
        if int(word) == 0:
            raise negotiation.Unacceptable(400, f'port "{word}" must be > 0')
    return [int(word) for word in words]
