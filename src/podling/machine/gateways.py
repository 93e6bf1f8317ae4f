"""The machine's ends of pods' links, which are the pods' gateways of IPv6.

A link that is given an address of IPv6 asks for a second or two whether somebody else has it, and answers
nobody meanwhile: a pod's first packets would wait as long. Nobody else is on a pod's link, so the address is
given once more, to be used at once.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from podling.process.netlink import ACK, CREATE, REQUEST, answers, attribute, send

ADDRESSES = Path("/proc/net/if_inet6")
_NEW_ADDRESS, _DELETE_ADDRESS, _LOCAL, _FLAGS = 20, 21, 2, 8
_TENTATIVE, _AT_ONCE = 0x40, 2
"""IFA_F_TENTATIVE, IFA_F_NODAD."""


def gateway6(subnet: str) -> str:
    """The first address of the pods' subnet, as host-local gives it to the machine."""
    return str(ipaddress.IPv6Network(subnet)[1])


def waiting(gateway: str, addresses: str) -> Iterator[int]:
    """The numbers of the links that ask about `gateway`, by the text of /proc/net/if_inet6."""
    wanted = ipaddress.IPv6Address(gateway).packed.hex()
    for line in addresses.splitlines():
        address, link, _, _, flags, _ = line.split()
        if address == wanted and int(flags, 16) & _TENTATIVE:
            yield int(link, 16)


def open_gateways(gateway: str) -> None:
    """Have every link that has this address answer to it. Raises OSError."""
    for link in waiting(gateway, ADDRESSES.read_text()):
        own = struct.pack("=4BI", socket.AF_INET6, 128, 0, 0, link)
        own += attribute(_LOCAL, ipaddress.IPv6Address(gateway).packed)
        at_once = attribute(_FLAGS, struct.pack("=I", _AT_ONCE))
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
            kernel.bind((0, 0))
            try:
                send(kernel, _DELETE_ADDRESS, REQUEST | ACK, own)
                list(answers(kernel))
                send(kernel, _NEW_ADDRESS, REQUEST | ACK | CREATE, own + at_once)
                list(answers(kernel))
            except OSError as error:
                # A link that has gone with its pod since keeps no other from being opened.
                if error.errno not in (errno.ENODEV, errno.EADDRNOTAVAIL):
                    raise
