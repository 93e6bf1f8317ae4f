"""Pods reach their gateway of IPv6 at once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from podling.machine.gateways import gateway6, waiting
from podling.machine.network import has_ipv6

GATEWAY = "fd70:6f64:6c69:4003::1"
ADDRESSES = """\
00000000000000000000000000000001 01 80 10 80       lo
fd706f646c6940030000000000000001 0d 80 00 c0 veth9bde7182
fd706f646c6940030000000000000001 0f 80 00 80 veth6b77f35f
fd706f646c6940040000000000000001 11 80 00 c0 veth6b77f360
"""
OPEN = f"""
import subprocess
from podling.machine.gateways import open_gateways
def ip(*words):
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
for name in ("one", "two"):
    ip("link", "add", name, "type", "veth", "peer", f"of-{{name}}")
    for end in (name, f"of-{{name}}"):
        ip("link", "set", end, "up")
    ip("-6", "address", "add", "{GATEWAY}/128", "dev", name)
before = ip("-6", "address", "show", "to", "{GATEWAY}")
open_gateways("{GATEWAY}")
after = ip("-6", "address", "show", "to", "{GATEWAY}")
print(before.count("tentative"), after.count("{GATEWAY}"), after.count("tentative"))
"""


def test_the_gateway_is_the_first_address_of_the_subnet() -> None:
    assert gateway6("fd70:6f64:6c69:4003::/64") == GATEWAY


def test_only_links_that_ask_about_this_gateway_are_meant() -> None:
    assert [*waiting(GATEWAY, ADDRESSES)] == [13]


@pytest.mark.skipif(os.geteuid() != 0 or not has_ipv6(), reason="needs root and IPv6")
def test_links_that_ask_answer_from_now_on() -> None:
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", OPEN], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["2", "2", "0"]
