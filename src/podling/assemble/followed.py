"""Configuration files of the API server in YAML or JSON, which are read again when they change."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from podling.apiserver.rules.configuration_file import ConfigurationError
from podling.apiserver.verbs.yaml_body import read_yaml
from podling.model.errors import StatusError
from podling.process.followed import changes

T = TypeVar("T")

log = logging.getLogger(__name__)


def read_file(file: Path, data: bytes | None, read: Callable[[bytes], T]) -> T:
    """What `read` makes of a file's content as JSON; None for a file that cannot be read. Raises
    ConfigurationError."""
    try:
        body = read_yaml(file.read_bytes() if data is None else data)
        if body.repeated:
            raise ConfigurationError(", ".join(body.repeated))
        return read(body.json)
    except (OSError, StatusError) as error:
        raise ConfigurationError(str(error)) from error


async def follow(
    what: str, file: Path, before: bytes | None, put: Callable[[bytes], Awaitable[None]]
) -> None:
    """Calls `put` with what a file holds when that has changed. `before`: what it held when it was first
    read. `put` raises ValueError for what cannot be used, which is logged."""
    async for (now,) in changes((file,), (before,)):
        if now is None:
            continue
        try:
            await put(now)
            log.info("%s %s has changed", what, file)
        except ValueError as error:
            log.error("%s %s stays what it was: %s", what, file, error)
