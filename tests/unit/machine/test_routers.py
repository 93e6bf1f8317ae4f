"""Real router advertisements: that of the machine's router is believed, that of a pod is not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from podling.machine.network import has_ipv6

ADVERTISE = """
import socket, struct, sys
link = socket.if_nametoindex("eth0")
out = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, link)
out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
told = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0)
told += struct.pack("!BBBBIII", 3, 4, 64, 0xC0, 3600, 1800, 0)
out.sendto(told + socket.inet_pton(socket.AF_INET6, sys.argv[1]), ("ff02::1", 0, 0, link))
"""
STORY = f"""
import subprocess, sys, time
from pathlib import Path
from podling.machine.network import lead_on
def ip(*words):
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
def until(holds):
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end, ip("-6", "route")
def joined(name):
    # No link asks for a second whether its address is free.
    ip("netns", "add", name)
    ip("netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0")
    ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
    ip("link", "set", name, "up")
    ip("-n", name, "link", "set", "eth0", "up")
    until(lambda: ip("-n", name, "-6", "address", "show", "dev", "eth0", "scope", "link", "-tentative"))
def advertise(name, prefix):
    ip("netns", "exec", name, sys.executable, "-c", {ADVERTISE!r}, prefix)
def heard(name, prefix):
    until(lambda: prefix in ip("-6", "route", "show", "dev", name))
Path("/proc/sys/net/ipv6/conf/default/accept_dad").write_text("0")
joined("router")
advertise("router", "2001:db8:1::")
heard("router", "2001:db8:1::/64")
lead_on("10.64.3.0/24,fd70::/64")
joined("pod")
advertise("pod", "2001:db8:2::")
advertise("router", "2001:db8:3::")
heard("router", "2001:db8:3::/64")
print(ip("-6", "route", "show", "dev", "pod"))
"""


@pytest.mark.skipif(os.geteuid() != 0 or not has_ipv6(), reason="needs root and IPv6")
def test_a_pod_is_no_router() -> None:
    apart = 'mount -t tmpfs tmpfs /run && mkdir /run/netns && ip link set lo up && exec "$@"'
    done = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c", apart, "sh", sys.executable, "-c", STORY],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "2001:db8" not in done.stdout and "default" not in done.stdout
