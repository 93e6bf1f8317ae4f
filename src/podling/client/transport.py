"""The interface of a client's transport. `https.py` and the API server's in-process transport implement it.

Paths, bodies and answers are those of HTTP, so that what works in one process works over the network. A
request in process takes every step of the API server's pipeline.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol

JSON = "application/json"

Answer = tuple[int, Mapping[str, str], bytes]
"""Status code, headers, body."""


class Transport(Protocol):
    async def request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None, content_type: str = JSON
    ) -> Answer:
        """One exchange. An error status is an answer; only failing to reach the server raises (OSError)."""
        ...

    def stream(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """A GET whose body is read as it comes, in pieces of any size; ends when the server ends it.

        Raises StatusError when the answer is not 200, OSError when the server cannot be reached.
        """
        ...

    async def close(self) -> None: ...
