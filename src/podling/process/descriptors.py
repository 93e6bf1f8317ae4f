"""The limit of open files of this process: raised to the hard limit.

Programs that this process starts get the original limit: containers inherit containerd's, and programs that
close every number below the limit take minutes where it is a billion.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

_GIVEN = resource.getrlimit(resource.RLIMIT_NOFILE)


def raise_limit() -> int:
    """Raise the soft limit to the hard one; returns it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


@contextmanager
def limit_as_given() -> Iterator[None]:
    """Programs started inside the block inherit the soft limit this process was started with."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_GIVEN[0], soft), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
