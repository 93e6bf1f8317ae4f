"""Reads long YAML in a process of its own.

libyaml's binding holds Python's global lock while it builds a document, for 2 to 4 µs a byte, so a thread
would block the event loop as well. The process reads one body and exits. One runs at a time; other long
bodies wait their turn.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE

import msgspec

from podling.apiserver.verbs.yaml_body import YamlBody, read_yaml
from podling.model.codec.json import may_repeat_keys
from podling.model.errors import StatusError, bad_request, internal

SHORT = 8 * 1024
"""Bytes that are read in this process: at most 20 ms."""
PROGRAM = "from podling.apiserver.verbs.yaml_process import main; main()"

_turn = asyncio.Semaphore(1)


class _Answer(msgspec.Struct):
    json: bytes = b""
    repeated: list[str] = []
    refusal: str = ""


async def read_any_yaml(body: bytes) -> YamlBody:
    """As `read_yaml`. Plain JSON, which most long bodies are, needs no process. Raises StatusError 400."""
    if len(body) <= SHORT:
        return read_yaml(body)
    if _is_plain_json(body):
        return YamlBody(body, [])
    async with _turn:
        return await _read_elsewhere(body)


def _is_plain_json(body: bytes) -> bool:
    """Whether the body is JSON without duplicate keys. With them it is read as YAML, whose reader reports
    them."""
    try:
        return body.lstrip()[:1] == b"{" and not may_repeat_keys(body)
    except (StatusError, RecursionError):
        return False


async def _read_elsewhere(body: bytes) -> YamlBody:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, stdin=PIPE, stdout=PIPE)
    try:
        written, _ = await process.communicate(body)
    finally:
        if process.returncode is None:
            process.kill()
            # Reads to the end, as nothing else closes the pipes.
            await process.communicate()
    if process.returncode != 0:
        raise internal(f"YAML could not be read: the process that read it ended with {process.returncode}")
    answer = msgspec.msgpack.decode(written, type=_Answer)
    if answer.refusal:
        raise bad_request(answer.refusal)
    return YamlBody(answer.json, answer.repeated)


def main() -> None:
    """The main function of that process."""
    os.nice(5)
    try:
        read = read_yaml(sys.stdin.buffer.read())
        answer = _Answer(read.json, read.repeated)
    except StatusError as error:
        answer = _Answer(refusal=error.message)
    sys.stdout.buffer.write(msgspec.msgpack.encode(answer))
