"""What captures packets, and how a stream of them begins."""

from __future__ import annotations

import struct

from podling.debug.capture import command, is_capture


def test_a_filter_is_one_word_that_is_no_option() -> None:
    plain = ["tcpdump", "-i", "any", "-s", "0", "-U", "-w", "-"]
    assert command("any", 0, 0, ()) == plain
    assert command("any", 0, 0, ("-z", "reboot")) == [*plain, "--", "-z reboot"]
    limited = ["tcpdump", "-i", "eth0", "-s", "96", "-U", "-w", "-", "-c", "5", "--", "port 80"]
    assert command("eth0", 96, 5, ("port", "80")) == limited


def test_captures_are_told_by_how_they_begin() -> None:
    for order in "<>":
        for magic in (0xA1B2C3D4, 0xA1B23C4D, 0x0A0D0D0A):
            assert is_capture(struct.pack(f"{order}I", magic) + bytes(20))
    assert not is_capture(b"tcpdump: bad") and not is_capture(b"")
