"""A program: storage and API server alone, over HTTP on loopback, begun anew whenever it ends.

`api_server.py DATA_FILE [HISTORY]` says `started PID` and then `serving PORT` on stdout for every life. The
parent never serves; it has imported everything once, so that a life costs a fork. Whoever comes is an
administrator.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

import uvloop

from podling import __version__
from podling.apiserver.assemble import ApiServer
from podling.apiserver.authn.authenticators import Authentication
from podling.apiserver.http.server import listening
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.paths.discovery import Discovery
from podling.apiserver.paths.openapi.documents import OpenAPI
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import Request, User
from podling.apiserver.request.response import Response
from podling.model.errors import bad_request
from podling.model.time import SystemClock
from podling.model.types.rbac import AUTHENTICATED, MASTERS
from podling.storage import sqlite
from podling.storage.compactor import compact_forever

HISTORY = 1_000
"""Revisions: few, so that compaction is often under way when the process dies."""


class Administrator:
    def authenticate(self, request: Request) -> User:
        return User("admin", (MASTERS, AUTHENTICATED))


async def no_node(context: RequestContext, obj: Any) -> Response:
    raise bad_request(f"{obj.metadata.name} is on no node")


def say(line: str) -> None:
    # Past any buffer: whoever kills this process must have heard what it said before.
    os.write(1, f"{line}\n".encode())


async def serve(path: Path, history: int) -> None:
    storage = await sqlite.open(path)
    server = ApiServer.build(
        storage,
        KINDS,
        clock=SystemClock(),
        connector=no_node,
        paths=(Discovery(KINDS, __version__), OpenAPI(KINDS, __version__)),
        authentication=Authentication((Administrator(),)),
        history=history,
    )
    await server.start()
    async with listening(server.handle, "127.0.0.1", 0, None, end_streams=server.close) as port:
        say(f"serving {port}")
        await compact_forever(storage, history)


def live(path: Path, history: int) -> NoReturn:
    say(f"started {os.getpid()}")
    try:
        uvloop.run(serve(path, history))
    except Exception:
        traceback.print_exc()
    # Nothing of the parent's may run in the child.
    os._exit(1)


def main(path: Path, history: int) -> None:
    while True:
        pid = os.fork()
        if pid == 0:
            live(path, history)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            sys.exit("the API server ended by itself")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else HISTORY)
