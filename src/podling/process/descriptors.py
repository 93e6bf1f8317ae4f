"""How many files and sockets this process may have open: as many as the machine lets it.

What it starts gets the limit it was itself started with: containers inherit containerd's, and programs that
walk through every number below the limit take minutes where it is a billion.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

_GIVEN = resource.getrlimit(resource.RLIMIT_NOFILE)


def raise_limit() -> int:
    """Raise the soft limit to the hard one; gives it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


@contextmanager
def limit_as_given() -> Iterator[None]:
    """Whatever is started inside of the block inherits the soft limit this process was started with."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_GIVEN[0], soft), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
