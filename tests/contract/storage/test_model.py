"""SQLite against the memory model (R-SYS-7).

Whatever is done to both, in turn or at once, and over restarts, they say the same.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from podling.storage import sqlite
from podling.storage.interface import CompactedError, ConflictError, Event, KeyExistsError, Storage
from podling.storage.memory import MemoryStorage
from podling.storage.sealing import SEALED

KEYS = st.sampled_from(["/registry/pods/a", "/registry/pods/ab", "/registry/pods/a/x", "/registry/secrets/s"])
PREFIXES = st.sampled_from(["", "/registry/", "/registry/pods/a", "/registry/pods/a/", "/registry/secrets/"])
VALUES = st.binary(max_size=8).filter(lambda value: not value.startswith(SEALED))
"""What is stored is JSON; what begins so on the disk was sealed."""
REVISIONS = st.integers(0, 30)

CREATE = st.tuples(st.just("create"), KEYS, VALUES)
UPDATE = st.tuples(st.just("update"), KEYS, VALUES, REVISIONS)
DELETE = st.tuples(st.just("delete"), KEYS, REVISIONS)
REPLACE = st.tuples(st.just("replace"), KEYS, VALUES)
REMOVE = st.tuples(st.just("remove"), KEYS)
WRITES = st.lists(st.one_of(CREATE, UPDATE, DELETE, REPLACE, REMOVE), min_size=1, max_size=6)


async def _apply(storage: Storage, write: tuple[Any, ...]) -> Any:
    """`replace` and `remove` are writes by one who has read the key; the others guess its revision."""
    verb, key, *arguments = write
    if verb in ("replace", "remove"):
        record = await storage.get(key)
        verb = "update" if verb == "replace" else "delete"
        arguments.append(record.revision if record else 0)
    try:
        return await getattr(storage, verb)(key, *arguments)
    except (KeyExistsError, ConflictError) as refusal:
        return type(refusal), refusal.record


async def _history(storage: Storage, prefix: str, after: int) -> Any:
    try:
        return list(await storage.history(prefix, after))
    except CompactedError as compacted:
        return compacted.revision


class Comparison(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.model: Storage = MemoryStorage()
        self.model_told: list[Event] = []
        self.model.watch("/registry/pods/", lambda _, events: self.model_told.extend(events))
        self.told: list[Event] = []
        self.open()

    def open(self) -> None:
        self.storage: Storage = self.runner.run(sqlite.open(Path(self.folder.name, "podling.db")))
        self.storage.watch("/registry/pods/", lambda _, events: self.told.extend(events))

    @rule(writes=WRITES)
    def write_at_once(self, writes: list[tuple[Any, ...]]) -> None:
        async def both() -> tuple[list[Any], list[Any]]:
            # The model first: it is done with a write before the next begins, and so says what order means.
            expected = await asyncio.gather(
                *(_apply(self.model, write) for write in writes if _guesses(write))
            )
            return expected, await asyncio.gather(
                *(_apply(self.storage, write) for write in writes if _guesses(write))
            )

        expected, found = self.runner.run(both())
        assert found == expected

    @rule(writes=WRITES)
    def write_in_turn(self, writes: list[tuple[Any, ...]]) -> None:
        for write in writes:
            expected = self.runner.run(_apply(self.model, write))
            assert self.runner.run(_apply(self.storage, write)) == expected

    @rule(prefix=PREFIXES, after=KEYS | st.just(""), limit=st.integers(0, 3))
    def list(self, prefix: str, after: str, limit: int) -> None:
        expected = self.runner.run(self.model.list(prefix, after=after, limit=limit))
        assert self.runner.run(self.storage.list(prefix, after=after, limit=limit)) == expected

    @rule(prefix=PREFIXES, after=REVISIONS)
    def history(self, prefix: str, after: int) -> None:
        expected = self.runner.run(_history(self.model, prefix, after))
        assert self.runner.run(_history(self.storage, prefix, after)) == expected

    @rule(revision=REVISIONS)
    def compact(self, revision: int) -> None:
        self.runner.run(self.model.compact(revision))
        self.runner.run(self.storage.compact(revision))

    @precondition(lambda self: self.model.revision > 0)
    @rule()
    def reopen(self) -> None:
        self.runner.run(self.storage.close())
        self.open()

    @invariant()
    def agree(self) -> None:
        assert self.storage.revision == self.model.revision
        assert self.storage.compacted == self.model.compacted
        assert self.told == self.model_told

    def teardown(self) -> None:
        self.runner.run(self.storage.close())
        self.runner.close()
        self.folder.cleanup()


def _guesses(write: tuple[Any, ...]) -> bool:
    return write[0] in ("create", "update", "delete")


TestComparison = Comparison.TestCase
TestComparison.settings = settings(stateful_step_count=15)
