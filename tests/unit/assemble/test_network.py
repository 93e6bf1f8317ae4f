from __future__ import annotations

from pathlib import Path

import pytest

from podling.assemble.network import ProxyOptions, shapes
from podling.machine.instance import Instance


@pytest.mark.parametrize(
    ("services", "pods", "wanted"),
    [
        ("10.96.0.0/16", "10.64.0.0/24", [("ip", "10.96.0.0/16", "10.64.0.0/24")]),
        ("10.96.0.0/16,fd01::/112", "", [("ip", "10.96.0.0/16", ""), ("ip6", "fd01::/112", "")]),
    ],
)
def test_a_table_for_each_family_that_services_have(
    services: str, pods: str, wanted: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    made = shapes(ProxyOptions(Instance.at(tmp_path), "node", services, pods))
    assert [(one.family.name, one.services, one.pods) for one in made] == wanted
