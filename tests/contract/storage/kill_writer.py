"""The process that gets killed: eight writers, each saying on stdout what was acknowledged, until the end.

A line is `opened REVISION`, or `KEY REVISION VALUE` (`-` for a deletion).
"""

from __future__ import annotations

import asyncio
import os
import sys
from itertools import count

from podling.storage import sqlite
from podling.storage.interface import Storage


def say(line: str) -> None:
    # Past any buffer: what was acknowledged before the kill must be heard.
    os.write(1, f"{line}\n".encode())


async def write(storage: Storage, life: str, writer: int) -> None:
    for n in count():
        key = f"/registry/pods/{life}/{writer}-{n % 5}"
        record = await storage.get(key)
        value = f"{life}-{writer}-{n}"
        if record is None:
            say(f"{key} {await storage.create(key, value.encode())} {value}")
        elif n % 7:
            say(f"{key} {await storage.update(key, value.encode(), record.revision)} {value}")
        else:
            say(f"{key} {await storage.delete(key, record.revision)} -")


async def compact(storage: Storage) -> None:
    written = asyncio.Event()
    storage.watch("", lambda revision, _: written.set())
    while True:
        await written.wait()
        written.clear()
        await storage.compact(storage.revision - 50)


async def main(path: str, life: str) -> None:
    storage = await sqlite.open(path)
    say(f"opened {storage.revision}")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(compact(storage))
        for writer in range(8):
            tasks.create_task(write(storage, life, writer))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
