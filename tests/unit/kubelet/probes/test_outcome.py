"""How connections that could not be made are worded."""

from __future__ import annotations

import errno
import socket
import ssl
from pathlib import Path

import pytest

from podling.kubelet.probes import check
from podling.kubelet.probes.check import dial_failure, tls_failure

FAILURES = [
    # host, error, what the event says
    ("10.0.0.7", OSError(errno.ECONNREFUSED, "x"), "dial tcp 10.0.0.7:80: connect: connection refused"),
    ("fd00::7", OSError(errno.EHOSTUNREACH, "x"), "dial tcp [fd00::7]:80: connect: no route to host"),
    ("10.0.0.7", TimeoutError(), "dial tcp 10.0.0.7:80: i/o timeout"),
    ("10.0.0.7", OSError("several failed"), "dial tcp 10.0.0.7:80: connect: several failed"),
    ("db", socket.gaierror(socket.EAI_NONAME, "x"), "dial tcp: lookup db on 192.0.2.53:53: no such host"),
    (
        "db",
        socket.gaierror(socket.EAI_AGAIN, "x"),
        "dial tcp: lookup db on 192.0.2.53:53: server misbehaving",
    ),
]


@pytest.mark.parametrize(("host", "error", "text"), FAILURES)
def test_failures_are_worded_as_everywhere(
    host: str, error: OSError, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "resolv.conf"
    file.write_text("nameserver 192.0.2.53\nnameserver 192.0.2.54\n")
    monkeypatch.setattr(check, "RESOLV_CONF", file)
    assert dial_failure(host, 80, error) == text


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("WRONG_VERSION_NUMBER", "http: server gave HTTP response to HTTPS client"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "remote error: tls: handshake failure"),
        ("TLSV1_ALERT_PROTOCOL_VERSION", "remote error: tls: protocol version not supported"),
    ],
)
def test_tls_that_fails_is_worded_so_too(reason: str, text: str) -> None:
    failed = ssl.SSLError(1, "x")
    failed.reason = reason
    assert tls_failure(failed) == text
