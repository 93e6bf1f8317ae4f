"""Long YAML is read elsewhere, and read alike."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from podling.apiserver.verbs import yaml_body
from podling.apiserver.verbs.yaml_body import SHORT, YamlBody, read_any_yaml, read_yaml
from podling.model.errors import StatusError

LONG = b"kind: ConfigMap\ndata:\n" + b"".join(b"  k%d: 2001-01-01\n" % i for i in range(SHORT // 16))


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
