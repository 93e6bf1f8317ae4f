from __future__ import annotations

import pytest

from podling.cri.interface import RuntimeFault
from podling.kubelet.images.pulls import pull_error

ERRORS = [
    ("NOT_FOUND", "no such image", "ErrImagePull", "rpc error: code = NotFound desc = no such image"),
    ("UNKNOWN", "odd", "ErrImagePull", "odd"),
    (
        "UNKNOWN",
        "RegistryUnavailable: it is down",
        "RegistryUnavailable",
        "image pull failed for a:1 because the registry is unavailable: it is down",
    ),
    (
        "UNKNOWN",
        "SignatureValidationFailed",
        "SignatureValidationFailed",
        "image pull failed for a:1 because the signature validation failed",
    ),
]


@pytest.mark.parametrize(("code", "said", "reason", "message"), ERRORS)
def test_reason_and_message(code: str, said: str, reason: str, message: str) -> None:
    error = pull_error("a:1", RuntimeFault(code, said))
    assert (error.reason, error.message) == (reason, message)
