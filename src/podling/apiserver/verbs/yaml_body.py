"""YAML bodies, read as Kubernetes reads them: converted to JSON at once, with dates kept as text.

The parser's events are checked before anything is built from them. Deep nesting is refused, because libyaml's
binding builds a document recursively, and so are aliases, because a few lines of them can unfold to any size.

Long YAML is read in a process of its own: the binding holds Python's global lock while it builds a document,
for 2 to 4 µs a byte, so a thread would block the event loop as well. One process reads one body after the
other, and ends when none has come for RESTS seconds: to start one for each body would hold the lock for 2 to
6 ms, and cost more than to read a short one. It imports this file, which is therefore apart from `body.py`
and imports little.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from subprocess import PIPE
from typing import Any, NamedTuple

import msgspec
import yaml

from podling.model.codec.json import decode_data
from podling.model.codec.quoting import quoted
from podling.model.codec.strict import may_repeat_keys
from podling.model.codec.yaml import CLoader, plain_scalar
from podling.model.errors import StatusError, bad_request, internal
from podling.process.waits import aside

DEEPEST = 500
SHORT = 8 * 1024
"""Bytes that are read in this process: at most 20 ms."""
PROGRAM = "from podling.apiserver.verbs.yaml_body import main; main()"

RESTS = 10.0
"""Seconds without a long body after which the process ends, and gives its memory back."""
LENGTH = 8
"""Bytes that say how long what follows is, both ways."""


class YamlBody(NamedTuple):
    json: bytes
    repeated: list[str]
    """A complaint for each key that is given twice."""


class _Answer(msgspec.Struct):
    """What the process writes."""

    json: bytes = b""
    repeated: list[str] = []
    refusal: str = ""


async def read_any_yaml(body: bytes) -> YamlBody:
    """As `read_yaml`. Raises StatusError 400."""
    if len(body) <= SHORT:
        return read_yaml(body)
    try:
        # Most long bodies are plain JSON, which needs no process. With duplicate keys it is read as YAML,
        # whose reader reports them.
        if body.lstrip()[:1] == b"{" and not await aside(len(body), _may_repeat_keys, body):
            return YamlBody(body, [])
    except (StatusError, RecursionError):
        pass
    answer = msgspec.msgpack.decode(await reader.read(body), type=_Answer)
    if answer.refusal:
        raise bad_request(answer.refusal)
    return YamlBody(answer.json, answer.repeated)


def _may_repeat_keys(body: bytes) -> bool:
    return may_repeat_keys(body, decode_data(body))


class Reader:
    """The process that reads long YAML, begun with the first long body. Bodies take turns."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._rest: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int:
        """Of one that waits for a body; 0 while there is none."""
        return self._process.pid if self._process is not None else 0

    async def read(self, body: bytes) -> bytes:
        """What the process writes. Raises StatusError 500."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            if self._rest is not None:
                self._rest.cancel()
            if self._process is not None and self._process.poll() is not None:
                _ended(self._process)
                self._process = None
            if (process := self._process) is None:
                # Not started by uvloop, which forks: copying the page tables takes 20 ms and more.
                # `subprocess` uses vfork, which takes 0.3 ms. A session of its own: Ctrl-C is not for it.
                command = [sys.executable, "-c", PROGRAM]
                process = subprocess.Popen(  # noqa: ASYNC220
                    command, stdin=PIPE, stdout=PIPE, start_new_session=True
                )
            self._process = None
            asking = loop.run_in_executor(None, _asked, process, body)
            try:
                # Shielded: cancelled before a thread is free for it, it would go on with the next body.
                answer = await asyncio.shield(asking)
            except asyncio.CancelledError:
                process.kill()
                raise
            if isinstance(answer, int):
                raise internal(f"YAML could not be read: the process that read it ended with {answer}")
            self._process, self._rest = process, loop.call_later(RESTS, self.end)
            return answer

    def end(self) -> None:
        """End the process, which has nothing to do."""
        if self._process is not None:
            self._process.kill()
            asyncio.get_running_loop().run_in_executor(None, _ended, self._process)
            self._process = None


reader = Reader()


def _asked(process: subprocess.Popen[bytes], body: bytes) -> bytes | int:
    """Its answer, or the exit code of a process that has ended instead."""
    assert process.stdin and process.stdout
    with suppress(BrokenPipeError):
        process.stdin.write(len(body).to_bytes(LENGTH))
        process.stdin.write(body)
        process.stdin.flush()
    size = int.from_bytes(process.stdout.read(LENGTH))
    answer = process.stdout.read(size)
    return answer if size and len(answer) == size else _ended(process)


def _ended(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a process that ends."""
    with suppress(BrokenPipeError), process:
        pass
    return process.returncode


def main() -> None:
    """The main function of the process that reads long YAML. It ends with the one that started it."""
    os.nice(5)
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    while length := asked.read(LENGTH):
        try:
            read = read_yaml(asked.read(int.from_bytes(length)))
            answer = _Answer(read.json, read.repeated)
        except StatusError as error:
            answer = _Answer(refusal=error.message)
        written = msgspec.msgpack.encode(answer)
        answers.write(len(written).to_bytes(LENGTH))
        answers.write(written)
        answers.flush()


def read_yaml(body: bytes) -> YamlBody:
    """Raises StatusError 400."""
    try:
        repeated = _repeated_keys(body)
        # In the order in which Go writes them: so unknown fields are told of.
        return YamlBody(msgspec.json.encode(yaml.load(body, CLoader), order="sorted"), repeated)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, OverflowError) as error:
        raise bad_request(f"error converting YAML to JSON: {error}") from error


def unmarshal_errors(repeated: list[str]) -> str:
    """One error of keys that are given twice, as Go's reader tells of it."""
    return "yaml: unmarshal errors:" + "".join(f"\n  {one}" for one in repeated)


class _Collection:
    """One that is open; in a mapping keys and values take turns."""

    def __init__(self, *, is_mapping: bool) -> None:
        self.keys: set[tuple[type, Any]] = set()
        self.key_is_next = is_mapping
        self._is_mapping = is_mapping

    def step(self) -> None:
        self.key_is_next = self._is_mapping and not self.key_is_next


def _repeated_keys(body: bytes) -> list[str]:
    """Raises YAMLError for aliases and for what nests too deeply."""
    repeated: list[str] = []
    open_: list[_Collection] = [_Collection(is_mapping=False)]
    for event in yaml.parse(body, CLoader):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not accepted")
        if isinstance(event, yaml.CollectionEndEvent):
            open_.pop()
        elif isinstance(event, yaml.NodeEvent):
            if open_[-1].key_is_next and isinstance(event, yaml.ScalarEvent):
                key = plain_scalar(event.value) if event.implicit[0] else event.value
                # To Go a truth, a number and a text are not the same key, though they are in JSON.
                if (type(key), key) in open_[-1].keys:
                    line = event.start_mark.line + 1 if event.start_mark else 0
                    told = quoted(key) if isinstance(key, str) else str(key).lower()
                    repeated.append(f"line {line}: key {told} already set in map")
                open_[-1].keys.add((type(key), key))
            open_[-1].step()
            if isinstance(event, yaml.CollectionStartEvent):
                open_.append(_Collection(is_mapping=isinstance(event, yaml.MappingStartEvent)))
        if len(open_) > DEEPEST:
            raise yaml.YAMLError("exceeded max depth")
    return repeated
