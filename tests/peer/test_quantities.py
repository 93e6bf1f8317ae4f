"""R-SYS-8: a quantity comes back in the same spelling as from Kubernetes, or is refused in the same words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from peer.sequence import make_namespace
from peer.server import Asking, Server

NAMESPACE = "quantities"
# Signs, zeros, points; suffixes; exponents; binary units; what is large, small or negative; no numbers.
WRITTEN = """
0 1 +1 00 01 001 00001 0. 00. 0.0 .0 .5 5. +5. 0.5 0.50 001.5 +00.1 1.0 1.00 1.000 1.5 1.50 1.500 1.001
0.001 .001 .123 0.123 123.456 1.234567 1000.001 1000.5 1.0000001 1.23456789 1.234567891 100 1000 10000
1000000 1234567 1000000000 1000m 1500m 500m 100u 1000u 1n 1000n 1000000n 0.1n 1.5n 0.0000000001 0.1m 0.0001
1k 1.5k 1M 1.5M 1G 1T 1P 1E 1000k 1500k 1000M 1.m 1.k 01m 010m 1000.m 1500.m 0m 0n 0k 0E 0.000m -0 -0Gi +0
1e0 1e1 1e2 1e3 1E3 1e+3 1e-3 1e-1 1e-9 1e-10 1e18 12e3 1.5e3 1.5e4 123e4 1e4 1e5 1e6 0e5 00e1 01e-9 1e-09
1e00 1e+00 1e-0 1E-3 1e03 1e015 +1e3 33e-1 3300e-3 100e-2 0.1e3 1.5e0 1.5e-1 12e-4 10000e-3 1Ki 1.5Ki .5Ki
1023Ki 1024Ki 1025Ki 1Mi 1024Mi 1536Mi 1Gi 1.5Gi 0.1Gi 0.01Gi 1Ti 1Pi 1Ei 7Ei 8Ei 1024Ei 0.001Ki 0.0001Ki
1.0001Ki 0.3Ki 1.7Ti 0Ki 512 1024 01Gi 07Gi 08Gi +8Gi +9Gi 7.Gi 011Gi 1.0Gi 01Ei 12345678901Ki
123456789012345Ki 9007199254740992Ki 7.99Ei 9E 9.2E 9.3E 10E 12E 100E 999E 1500E 12345E 1e19 1e20 1e21 1e30
1e99 5000P 123456789012345678 9223372036854775807 9223372036854775808 92233720368547758070
1234567890123456789 12345678901234567.8 9223372036854775807.5 9223372036854775806.999999999
9999999999.9999999999 123456789.123456789 999999999999999999999m 18446744073709551616n
0.123456789012345678901234567890 1e-99 1e-1000 -1 -.5 -1.5 -500m -1n -1Ki -1.5Gi -8Ei -9E -10E -1e3
-9223372036854775809 . + - +. -Ki .Ki Ki .m m E E3 e3 n 1K 1ki 1KI 1e 1e+ 1ee3 1m5 1i i e .e 1Kim 1mm 1Mi1
1e3Ki 0x10 1_000 1,5 1.5.5 1..5 .. .5. abc --1 +-1 1+1
"""
SPELLINGS: tuple[str | float, ...] = (
    *WRITTEN.split(),
    *("", " ", " 1", "1 ", "1\n", "1.5 Gi", "\uff11", "1\u00b5"),
    *(0, 1, -1, 1.5, 1000, 0.001, 1000.0, 1e21, 0.1, 1e-7, 12345678901234567890, True),
)
BEYOND = ("1000E", "1000000E", "1000000000000000000k", "100000000000000000000000")
"""Kubernetes 1.36 leaves the exponent of these out where it is past what a suffix can say, and says 1. Later
versions say `1e21`, as podling does."""


def test_a_quantity_comes_back_in_the_same_spelling(kubernetes: Server, podling: Server) -> None:
    theirs, ours = (dict(_said(server)) for server in (kubernetes, podling))
    assert len(theirs) > 2 * 250
    assert {key: said for key, said in ours.items() if said != theirs[key]} == {}


def test_none_comes_back_as_another_number(kubernetes: Server, podling: Server) -> None:
    with kubernetes.asking() as theirs, podling.asking() as ours:
        for asking in (theirs, ours):
            make_namespace(asking, NAMESPACE)
        for spelling in BEYOND:
            assert _size_limit(theirs, spelling) in ("1", "100")
            assert _size_limit(ours, spelling) in ("1e21", "1e24", "100e21")


def _said(server: Server) -> Iterator[tuple[str, Any]]:
    """Of a quantity as it is, and of one that is rounded up to thousandths."""
    with server.asking() as asking:
        make_namespace(asking, NAMESPACE)
        for spelling in SPELLINGS:
            yield f"sizeLimit {spelling!r}", _size_limit(asking, spelling)
            yield f"cpu {spelling!r}", _cpu_limit(asking, spelling)


def _size_limit(asking: Asking, spelling: Any) -> Any:
    volume = {"name": "v", "emptyDir": {"sizeLimit": spelling}}
    said = _made(asking, {"volumes": [volume]})
    return said if isinstance(said, str) else said["volumes"][0]["emptyDir"].get("sizeLimit")


def _cpu_limit(asking: Asking, spelling: Any) -> Any:
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": spelling}}}
    said = _made(asking, {"containers": [container]})
    return said if isinstance(said, str) else said["containers"][0]["resources"]["limits"]["cpu"]


def _made(asking: Asking, spec: dict[str, Any]) -> Any:
    """The spec of a pod with that in it; what is said if there is none."""
    containers = [{"name": "c", "image": "i"}]
    whole = {"containers": containers, "automountServiceAccountToken": False, **spec}
    body = {"metadata": {"name": "p"}, "spec": whole}
    said = asking.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All", body)
    return said.body["spec"] if said.code == 201 else said.body["message"]
