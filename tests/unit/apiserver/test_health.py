"""The health paths, in Kubernetes' words."""

import pytest

from podling.apiserver.health import Checks, report

PASSES: Checks = {"ping": lambda: True}
FAILS: Checks = {"ping": lambda: True, "caches": lambda: False}


@pytest.mark.parametrize(
    ("checks", "verbose", "status", "body"),
    [
        (PASSES, False, 200, b"ok"),
        (PASSES, True, 200, b"[+]ping ok\nreadyz check passed\n"),
        (FAILS, False, 500, b"[+]ping ok\n[-]caches failed: reason withheld\nreadyz check failed\n"),
    ],
)
def test_reports(checks: Checks, verbose: bool, status: int, body: bytes) -> None:
    response = report("readyz", checks, verbose=verbose)
    assert (response.status, response.body) == (status, body)
