"""`podling capture`: the command that writes a pod's packets, and what a stream of them looks like."""

from __future__ import annotations

from collections.abc import Sequence

HEADER = 24
"""Bytes before the first packet of a pcap file."""
MAGICS = frozenset(
    {b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x0a\x0d\x0d\x0a"}
)
"""How pcap begins, in both byte orders, with microseconds and with nanoseconds; and pcapng."""


def command(interface: str, snap_length: int, count: int, filter: Sequence[str]) -> list[str]:
    """tcpdump, which writes each packet at once. `snap_length` bytes of a packet, 0 for all; `count` packets,
    0 for no end. The filter is one word, so that nothing of it is taken for an option."""
    made = ["tcpdump", "-i", interface, "-s", str(snap_length), "-U", "-w", "-"]
    if count:
        made += ["-c", str(count)]
    return [*made, "--", " ".join(filter)] if filter else made


def is_capture(first: bytes) -> bool:
    """Whether a stream that begins so is one of packets."""
    return first[:4] in MAGICS
