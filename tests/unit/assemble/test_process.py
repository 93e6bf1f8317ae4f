"""The process around the parts."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from podling.assemble.process import COLLECT_AFTER, tune


@pytest.fixture
def as_it_was() -> Iterator[None]:
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*thresholds)


def test_a_thread_that_computes_soon_gives_way_to_the_loop(as_it_was: None) -> None:
    """The loop waits so long several times a request: Python's own 5 ms would come to 20 ms and more."""
    tune()
    assert sys.getswitchinterval() <= 0.001
    assert gc.get_threshold()[0] == COLLECT_AFTER
