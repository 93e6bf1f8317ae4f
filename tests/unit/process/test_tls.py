"""The TLS contexts of clients."""

from __future__ import annotations

import ssl

import pytest

from podling.process.tls import connecting_context


def test_no_authority_is_read_to_believe_anybody() -> None:
    context = connecting_context(verify=False)
    assert context.verify_mode is ssl.CERT_NONE
    assert not context.check_hostname
    assert context.cert_store_stats()["x509"] == 0


@pytest.mark.parametrize("authorities", [b"", b" \n", b"no certificate"])
def test_authorities_that_are_none_are_refused(authorities: bytes) -> None:
    """Else such a client would believe whom the machine believes."""
    with pytest.raises(OSError):
        connecting_context(authorities)
