"""What a part changes of the process it runs in is as it was before, after a test of it."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Iterator

import pytest

from podling.assemble import process


@pytest.fixture
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    monkeypatch.setattr(process, "raise_limit", lambda: None)
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*thresholds)
    process.ask_for_slice(0)
    for number, handler in handlers.items():
        signal.signal(number, handler)
