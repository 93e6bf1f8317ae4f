"""Port-forward: every stream the client opens is joined with one like it at the runtime.

A connection through a port is a pair of streams, data and error, that the runtime finds by their `requestid`;
here they are only carried, each by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from podling.kubelet.serving.pod_host import Moment
from podling.streaming.errors import Disconnected
from podling.streaming.session import Session, Stream


async def relay_ports(client: Session, runtime: Session, *ends: Moment, streams: int | None = None) -> None:
    """Returns when either side is gone or one of `ends` has come: a runtime keeps the connection, though
    nothing may be there any more that it could lead to. `streams` is how many a client has whose protocol has
    no half close: then it is over, too, when the runtime has ended them all.
    """
    async with asyncio.TaskGroup() as group:
        group.create_task(_drop_with(client, runtime))
        group.create_task(_finish_with(runtime, client))
        ending = [group.create_task(_end_with(moment, runtime)) for moment in ends]
        async with asyncio.TaskGroup() as joins:
            accepted = 0
            while accepted != streams and (ours := await client.accept()) is not None:
                accepted += 1
                joins.create_task(
                    _join(ours, runtime.open(runtime_headers(ours)), half_close=streams is None)
                )
        for task in ending:
            task.cancel()
        runtime.drop()
        await client.finish()


async def _end_with(moment: Moment, runtime: Session) -> None:
    await moment()
    runtime.drop()


async def _drop_with(client: Session, runtime: Session) -> None:
    await client.wait_lost()
    runtime.drop()


async def _finish_with(runtime: Session, client: Session) -> None:
    await runtime.wait_lost()
    await client.finish()


def runtime_headers(stream: Stream) -> Mapping[str, str]:
    """The stream's headers; clients of old sent no request id, their data stream was the next after its error
    stream.
    """
    headers = dict(stream.headers)
    if "requestid" not in headers:
        first = stream.number if headers.get("streamtype") == "error" else stream.number - 2
        headers["requestid"] = str(first)
    return headers


async def _join(ours: Stream, theirs: Stream, *, half_close: bool) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_carry(ours, theirs))
        await _carry(theirs, ours)
        if not half_close:
            ours.reset()


async def _carry(source: Stream, target: Stream) -> None:
    try:
        while data := await source.read():
            await target.write(data)
    except Disconnected:
        source.reset()
        return
    if source.ended:
        target.end()
    else:
        target.reset()
