"""How connections that could not be made are worded."""

from __future__ import annotations

import errno
import socket

import pytest

from podling.kubelet.probes.check import dial_failure

FAILURES = [
    # host, error, what the event says
    ("10.0.0.7", OSError(errno.ECONNREFUSED, "x"), "dial tcp 10.0.0.7:80: connect: connection refused"),
    ("fd00::7", OSError(errno.EHOSTUNREACH, "x"), "dial tcp [fd00::7]:80: connect: no route to host"),
    ("10.0.0.7", TimeoutError(), "dial tcp 10.0.0.7:80: i/o timeout"),
    ("10.0.0.7", OSError("several failed"), "dial tcp 10.0.0.7:80: connect: several failed"),
    ("db", socket.gaierror(-2, "not known"), "dial tcp: lookup db: no such host"),
]


@pytest.mark.parametrize(("host", "error", "text"), FAILURES)
def test_failures_are_worded_as_everywhere(host: str, error: OSError, text: str) -> None:
    assert dial_failure(host, 80, error) == text
