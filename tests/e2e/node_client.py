"""A client of the local proxy of a joined node, with the node's certificate: it writes and reads until so
many requests after a first error, and says what it saw.

`python node_client.py DATA_DIR PORT NODE`
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from msgspec.structs import replace

from podling.assemble.alone import read_access
from podling.assemble.worker import SERVER_NAME
from podling.client.client import Client
from podling.model.errors import StatusError
from podling.model.types.node import Node

WARM, AFTER, MOST = 10, 30, 3000


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main(data: Path, port: str, node: str) -> None:
    access = read_access(data / "kubelet.conf")
    wire = access.wire._replace(server_name=SERVER_NAME, proxy=None)
    client = Client(replace(access, server=f"https://127.0.0.1:{port}", wire=wire).transport())
    errors: list[str] = []
    left, number = MOST, 0
    while left:
        left, number = left - 1, number + 1
        try:
            patch = {"metadata": {"annotations": {"test/number": str(number)}}}
            await client.patch(Node, node, "", patch, subresource="status")
            found = (await client.get(Node, node)).metadata.annotations["test/number"]
            assert found == str(number), "it reads less than it has written"
        except (OSError, StatusError) as error:
            errors.append(repr(error))
            left = min(left, AFTER)
        if number == WARM:
            say("warm")
    await client.close()
    say(json.dumps(errors))


asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
