"""IP addresses and networks as values, read as Go does (`net/netip`), which tells their faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Any, ClassVar

import msgspec

from podling.apiserver.cel.values import CelError, Meter, no_overload
from podling.model.codec.quoting import quoted

_HEX = frozenset("0123456789abcdefABCDEF")
_NO_PREFIX = "network address parse error during conversion from string: "


class _AddressError(ValueError):
    """The message is Go's."""


class Address(msgspec.Struct, frozen=True):
    cel_type: ClassVar[str] = "net.IP"
    ip: IPv4Address | IPv6Address

    def to_text(self) -> str:
        return str(self.ip)


class Network(msgspec.Struct, frozen=True):
    cel_type: ClassVar[str] = "net.CIDR"
    ip: IPv4Address | IPv6Address
    bits: int

    def to_text(self) -> str:
        return f"{self.ip}/{self.bits}"

    @property
    def whole(self) -> IPv4Network | IPv6Network:
        return ip_network(self.to_text(), strict=False)


def parsed_address(text: str) -> tuple[IPv4Address | IPv6Address, str]:
    """The address, and its zone. Raises ValueError."""
    try:
        mark = next((one for one in text if one in ".:%"), "")
        if mark == "." and len(text) <= 64:
            return IPv4Address(bytes(_octets(text))), ""
        if mark == ":" and len(text) <= 256:
            address, percent, zone = text.partition("%")
            if percent and not zone:
                raise _AddressError("zone must be a non-empty string")
            return IPv6Address(_sixteen(address)), zone
        raise _AddressError("missing IPv6 address" if mark == "%" else "unable to parse IP")
    except _AddressError as error:
        raise ValueError(f"ParseAddr({quoted(text)}): {error}") from None


def _at(message: str, rest: str) -> _AddressError:
    return _AddressError(f"{message} (at {quoted(rest)})" if rest else message)


def _octets(text: str) -> list[int]:
    made: list[int] = []
    value, digits = 0, 0
    for i, letter in enumerate(text):
        if "0" <= letter <= "9":
            if digits == 1 and value == 0:
                raise _AddressError("IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(letter), digits + 1
            if value > 255:
                raise _AddressError("IPv4 field has value >255")
        elif letter == ".":
            if i in (0, len(text) - 1) or text[i - 1] == ".":
                raise _at("IPv4 field must have at least one digit", text[i:])
            if len(made) == 3:
                raise _AddressError("IPv4 address too long")
            made.append(value)
            value, digits = 0, 0
        else:
            raise _at("unexpected character", text[i:])
    if len(made) < 3:
        raise _AddressError("IPv4 address too short")
    return [*made, value]


def _sixteen(text: str) -> bytes:
    """The bytes of an IPv6 address."""
    made, gap, rest = bytearray(), -1, text
    if rest.startswith("::"):
        gap, rest = 0, rest[2:]
        if not rest:
            return bytes(16)
    while len(made) < 16:
        size = 0
        while size < len(rest) and rest[size] in _HEX:
            size += 1
            if size > 4:
                raise _at("each group must have 4 or less digits", rest)
        if not size:
            raise _at("each colon-separated field must have at least one digit", rest)
        if rest[size : size + 1] == ".":
            if gap < 0 and len(made) != 12:
                raise _at("embedded IPv4 address must replace the final 2 fields of the address", rest)
            if len(made) > 12:
                raise _at("too many hex fields to fit an embedded IPv4 at the end of the address", rest)
            made += bytes(_octets(rest))
            rest = ""
            break
        made += int(rest[:size], 16).to_bytes(2, "big")
        rest = rest[size:]
        if not rest:
            break
        if rest[0] != ":":
            raise _at("unexpected character, want colon", rest)
        if len(rest) == 1:
            raise _at("colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if gap >= 0:
                raise _at("multiple :: in address", rest)
            gap, rest = len(made), rest[1:]
            if not rest:
                break
    if rest:
        raise _at("trailing garbage after address", rest)
    if len(made) < 16:
        if gap < 0:
            raise _AddressError("address string too short")
        made[gap:gap] = bytes(16 - len(made))
    elif gap >= 0:
        raise _AddressError("the :: must expand to at least one field of zeros")
    return bytes(made)


def address_of(text: str) -> Address:
    """Raises CelError."""
    try:
        ip, zone = parsed_address(text)
    except ValueError as error:
        why = f"IP Address {quoted(text)} parse error during conversion from string: {error}"
        raise CelError(why) from None
    if zone:
        raise CelError(f"IP address {quoted(text)} with zone value is not allowed")
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        raise CelError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Address(ip)


def network_of(text: str) -> Network:
    """Raises CelError."""
    address, slash, bits = text.rpartition("/")
    told = f"{_NO_PREFIX}{_NO_PREFIX}netip.ParsePrefix({quoted(text)}): "
    if not slash:
        raise CelError(f"{told}no '/'")
    try:
        ip, zone = parsed_address(address)
    except ValueError as error:
        raise CelError(f"{told}{error}") from None
    if zone:
        raise CelError(f"{told}IPv6 zones cannot be present in a prefix")
    is_number = bits.isascii() and bits.isdigit() and len(bits) < 10
    if not is_number or (len(bits) > 1 and bits[0] == "0"):
        raise CelError(f"{told}bad bits after slash: {quoted(bits)}")
    if int(bits) > ip.max_prefixlen:
        raise CelError(f"{told}prefix length out of range")
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        raise CelError(f"{_NO_PREFIX}IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Network(ip, int(bits))


def ip_of(meter: Meter, value: Any) -> Address:
    if type(value) is not Network:
        raise no_overload("ip", value)
    return Address(value.ip)


def ip(meter: Meter, value: Any) -> Address:
    if type(value) is not str:
        raise no_overload("ip", value)
    return address_of(value)


def is_ip(meter: Meter, value: Any) -> bool:
    if type(value) is not str:
        raise no_overload("isIP", value)
    try:
        address_of(value)
    except CelError:
        return False
    return True


def is_canonical(meter: Meter, value: Any) -> bool:
    if type(value) is not str:
        raise no_overload("ip.isCanonical", value)
    return address_of(value).to_text() == value


def cidr(meter: Meter, value: Any) -> Network:
    if type(value) is not str:
        raise no_overload("cidr", value)
    return network_of(value)


def is_cidr(meter: Meter, value: Any) -> bool:
    if type(value) is not str:
        raise no_overload("isCIDR", value)
    try:
        network_of(value)
    except CelError:
        return False
    return True


def family(meter: Meter, value: Any) -> int:
    return int(_ip("family", value).version)


def _ip(function: str, value: Any) -> IPv4Address | IPv6Address:
    if type(value) is not Address:
        raise no_overload(function, value)
    return value.ip


def is_unspecified(meter: Meter, value: Any) -> bool:
    return _ip("isUnspecified", value).is_unspecified


def is_loopback(meter: Meter, value: Any) -> bool:
    return _ip("isLoopback", value).is_loopback


def is_link_local_multicast(meter: Meter, value: Any) -> bool:
    octets = _ip("isLinkLocalMulticast", value).packed
    if len(octets) == 4:
        return octets[:3] == b"\xe0\x00\x00"
    return octets[0] == 0xFF and octets[1] & 0x0F == 0x02


def is_link_local_unicast(meter: Meter, value: Any) -> bool:
    return _ip("isLinkLocalUnicast", value).is_link_local


def is_global_unicast(meter: Meter, value: Any) -> bool:
    one = _ip("isGlobalUnicast", value)
    is_broadcast = one.packed == b"\xff\xff\xff\xff"
    return not (
        is_broadcast or one.is_unspecified or one.is_loopback or one.is_multicast or one.is_link_local
    )


def _network(function: str, value: Any, *others: Any) -> Network:
    if type(value) is not Network:
        raise no_overload(function, value, *others)
    return value


def contains_ip(meter: Meter, value: Any, other: Any) -> bool:
    network = _network("containsIP", value, other)
    if type(other) is str:
        try:
            other = address_of(other)
        except CelError:
            raise no_overload() from None
    if type(other) is not Address:
        raise no_overload("containsIP", value, other)
    return other.ip.version == network.ip.version and other.ip in network.whole


def contains_cidr(meter: Meter, value: Any, other: Any) -> bool:
    network = _network("containsCIDR", value, other)
    if type(other) is str:
        other = network_of(other)
    if type(other) is not Network:
        raise no_overload("containsCIDR", value, other)
    inner = other.whole
    return (
        network.ip.version == other.ip.version
        and network.bits <= other.bits
        and inner.network_address in network.whole
    )


def masked(meter: Meter, value: Any) -> Network:
    network = _network("masked", value)
    return Network(network.whole.network_address, network.bits)


def prefix_length(meter: Meter, value: Any) -> int:
    return _network("prefixLength", value).bits


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "ip": ip,
    ".ip": ip_of,
    "isIP": is_ip,
    "ip.isCanonical": is_canonical,
    "cidr": cidr,
    "isCIDR": is_cidr,
    "family": family,
    "isUnspecified": is_unspecified,
    "isLoopback": is_loopback,
    "isLinkLocalMulticast": is_link_local_multicast,
    "isLinkLocalUnicast": is_link_local_unicast,
    "isGlobalUnicast": is_global_unicast,
    "containsIP": contains_ip,
    "containsCIDR": contains_cidr,
    "masked": masked,
    "prefixLength": prefix_length,
}
