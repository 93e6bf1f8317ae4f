from __future__ import annotations

from ipaddress import IPv4Network, ip_network

from hypothesis import given
from hypothesis import strategies as st

from podling.model.rules.pod_subnets import PREFIX, pod_subnets

BOTH = "10.96.0.0/16,fd00:96::/108"


def test_pods_have_the_families_of_services() -> None:
    assert pod_subnets("10.64.3.0/24", "10.96.0.0/16") == "10.64.3.0/24"
    assert pod_subnets("10.64.3.0/24", BOTH) == "10.64.3.0/24,fd70:6f64:6c69:4003::/64"


@given(st.tuples(*[st.integers(0, (1 << 16) - 1)] * 2))
def test_nodes_that_differ_in_ipv4_differ_in_ipv6(numbers: tuple[int, int]) -> None:
    first, second = (
        ip_network(pod_subnets(str(IPv4Network((0x0A000000 | number << 8, 24))), BOTH).split(",")[1])
        for number in numbers
    )
    assert first.subnet_of(PREFIX) and second.subnet_of(PREFIX)  # type: ignore[arg-type]
    assert first.overlaps(second) is (numbers[0] == numbers[1])
