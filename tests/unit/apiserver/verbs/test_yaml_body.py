"""Long YAML is read elsewhere, and read alike."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podling.apiserver.verbs import yaml_body
from podling.apiserver.verbs.yaml_body import SHORT, Reader, YamlBody, read_any_yaml, read_yaml
from podling.model.errors import StatusError

LONG = b"kind: ConfigMap\ndata:\n" + b"".join(b"  k%d: 2001-01-01\n" % i for i in range(SHORT // 16))


@pytest.fixture(autouse=True)
async def a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr(yaml_body, "reader", Reader())
    yield
    yaml_body.reader.end()


@pytest.fixture
def read_here(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The bodies that were read in the process that asked."""
    bodies: list[bytes] = []

    def read(body: bytes) -> YamlBody:
        bodies.append(body)
        return read_yaml(body)

    monkeypatch.setattr(yaml_body, "read_yaml", read)
    return bodies


@pytest.mark.parametrize("body", [LONG, LONG + b"kind: Pod\n"], ids=["plain", "with a key twice"])
async def test_long_yaml_is_read_by_another_process_alike(read_here: list[bytes], body: bytes) -> None:
    assert await read_any_yaml(body) == read_yaml(body)
    assert read_here == []


async def test_short_yaml_is_read_at_once(read_here: list[bytes]) -> None:
    assert (await read_any_yaml(b"a: 1")).json == b'{"a":1}'
    assert read_here == [b"a: 1"]


async def test_a_refusal_is_the_same(read_here: list[bytes]) -> None:
    body = LONG + b"a: &b c\nd: *b\n"
    with pytest.raises(StatusError) as here:
        read_yaml(body)
    with pytest.raises(StatusError) as refused:
        await read_any_yaml(body)
    assert (refused.value.code, refused.value.message) == (400, here.value.message)


async def test_json_needs_no_process(monkeypatch: pytest.MonkeyPatch, read_here: list[bytes]) -> None:
    monkeypatch.setattr(yaml_body, "PROGRAM", "raise SystemExit(9)")
    body = b'{"a": "%b"}' % (b"x" * SHORT)
    assert await read_any_yaml(body) == YamlBody(body, [])
    with pytest.raises(StatusError, match="ended with 9"):
        await read_any_yaml(b'{"a": 1, "a": "%b"}' % (b"x" * SHORT))


async def test_who_leaves_leaves_no_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The end of a pipe that only the process holds is seen when it has ended."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    began = f"import time; pipe = open({str(pipe)!r}, 'w'); print('began', file=pipe, flush=True)"
    monkeypatch.setattr(yaml_body, "PROGRAM", f"{began}; time.sleep(600)")
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(read_any_yaml(LONG))
        with await asyncio.to_thread(pipe.open) as heard:
            assert await asyncio.to_thread(heard.readline) == "began\n"
            reading.cancel()
            assert await asyncio.to_thread(heard.read) == ""


async def test_one_process_reads_one_body_after_the_other() -> None:
    """Those that are refused, too; and who asks at the same time waits."""
    assert yaml_body.reader.pid == 0
    await asyncio.gather(*(read_any_yaml(LONG) for _ in range(3)))
    first = yaml_body.reader.pid
    with pytest.raises(StatusError):
        await read_any_yaml(LONG + b"]")
    assert await read_any_yaml(LONG) == read_yaml(LONG)
    assert yaml_body.reader.pid == first != 0


async def test_one_that_was_killed_is_begun_anew() -> None:
    await read_any_yaml(LONG)
    first = yaml_body.reader.pid
    os.kill(first, signal.SIGKILL)
    await asyncio.to_thread(os.waitid, os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert await read_any_yaml(LONG) == read_yaml(LONG)
    assert yaml_body.reader.pid != first


async def test_it_ends_when_none_has_come_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_body, "RESTS", 0.0)
    await read_any_yaml(LONG)
    # Its timer, and nothing else, has ended it.
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert yaml_body.reader.pid == 0


async def test_it_ends_with_the_process_that_started_it() -> None:
    await read_any_yaml(LONG)
    process = yaml_body.reader._process
    assert process is not None and process.stdin is not None
    process.stdin.close()
    assert await asyncio.to_thread(process.wait, 60) == 0
