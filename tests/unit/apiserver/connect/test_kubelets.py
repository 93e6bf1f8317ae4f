"""How the API server speaks to whom it cannot judge."""

from __future__ import annotations

import ssl

from podling.apiserver.connect.kubelets import unverified


def test_no_authority_is_read_to_believe_anybody() -> None:
    context = unverified()
    assert context.verify_mode is ssl.CERT_NONE
    assert not context.check_hostname
    assert context.cert_store_stats()["x509"] == 0
