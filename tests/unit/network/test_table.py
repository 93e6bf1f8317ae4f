"""The maps after any sequence of changes are those computed afresh (a kernel that checks each command), and a
change is small."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from podling.network.services import Behind, Frontend
from podling.network.table import IPV4, ServiceTable, Shape, replacement

SHAPE = Shape(IPV4, "test", "10.64.0.0/24", "10.96.0.0/16")
BACKENDS = [(f"10.64.0.{n}", 8080) for n in range(2, 8)]


class Kernel:
    """Maps, sets and chains, as a script of one transaction leaves them. What nftables would refuse fails."""

    def __init__(self) -> None:
        self.elements: dict[str, dict[str, str]] = {}
        self.chains: dict[str, list[str]] = {}

    def run(self, script: str) -> int:
        """Returns how many elements were added or deleted."""
        if "table ip test {\n" in script:
            head, script = script[: len(replacement(SHAPE))], script[len(replacement(SHAPE)) :]
            assert head == replacement(SHAPE)
            self.elements = {name: {} for name in re.findall(r"(?:map|set) (\S+) \{", head)}
            self.chains = {name: [] for name in re.findall(r"chain (\S+) \{", head)}
        operations = 0
        for line in script.splitlines():
            verb, what, _, table, name, *rest = line.split(" ", 5)
            assert table == "test"
            text = rest[0] if rest else ""
            match verb, what:
                case "add", "set":
                    self.elements.setdefault(name, {})
                case "add", "chain":
                    self.chains.setdefault(name, [])
                case "flush", "chain":
                    self.chains[name] = []
                case "add", "rule":
                    for goal in re.findall(r"goto (\S+?)(?=[,\s]|$)", text):
                        assert goal in self.chains
                    for name_of_set in re.findall(r"@(\S+)", text):
                        assert name_of_set in self.elements
                    self.chains[name].append(text)
                case "delete", "chain":
                    del self.chains[name]
                    rules = " ".join(rule for rules in self.chains.values() for rule in rules)
                    verdicts = " ".join(verdict for of in self.elements.values() for verdict in of.values())
                    assert not re.search(rf"goto {name}( |,|$)", f"{rules} {verdicts}")
                case "delete", "set":
                    assert not any(f"@{name} " in rule for rules in self.chains.values() for rule in rules)
                    del self.elements[name]
                case "delete", "element":
                    for key, value in _elements(text):
                        operations += 1
                        assert self.elements[name].pop(key) == value
                case "add", "element":
                    for key, value in _elements(text):
                        operations += 1
                        assert key not in self.elements[name]
                        if value.startswith("goto "):
                            assert value.removeprefix("goto ") in self.chains
                        self.elements[name][key] = value
                case _:
                    raise AssertionError(line)
        return operations

    def seen(self) -> Mapping[str, object]:
        """What clients can tell apart: which endpoint has which index is no matter, only that they begin at 0
        and that none is left out."""
        found: dict[str, object] = {}
        for name, of in self.elements.items():
            if name.endswith("goals"):
                # Those of other numbers of endpoints stay.
                assert not {one.removeprefix("goto ") for one in of.values()} - set(self.chains)
                continue
            if name in ("vips", "nodeports"):
                goals = self.elements["goals" if name == "vips" else "node-goals"]
                found[name] = {key: goals[number] for key, number in of.items()}
                continue
            if not name.endswith("endpoints"):
                found[name] = of
                continue
            lists: dict[str, dict[int, str]] = {}
            for key, value in of.items():
                frontend, _, index = key.rpartition(" . ")
                lists.setdefault(frontend, {})[int(index)] = value
            for frontend, backends in lists.items():
                assert sorted(backends) == list(range(len(backends)))
                found[f"{name} {frontend}"] = sorted(backends.values())
        own = {name: rules for name, rules in self.chains.items() if name.startswith("own-")}
        found["own"] = {
            name: sorted(re.sub(r"\d+ : |,", "", " ".join(rules)).split(" ")) for name, rules in own.items()
        }
        return found


def _elements(text: str) -> list[tuple[str, str]]:
    listed = [one.partition(" : ") for one in text.removeprefix("{ ").removesuffix(" }").split(", ")]
    return [(key, value) for key, _, value in listed]


backends = st.lists(st.sampled_from(BACKENDS), unique=True, max_size=5).map(tuple)


@st.composite
def behind(draw: st.DrawFn) -> Behind:
    way = draw(st.sampled_from(["cluster", "outside", "local"]))
    endpoints = draw(backends)
    local = draw(backends) if way == "local" else ()
    return Behind(
        ("ns", "svc"),
        "",
        way,
        endpoints,
        local,
        tuple(sorted({address for address, _ in (*endpoints, *local)})),
        "" if endpoints else draw(st.sampled_from(["reject", "drop"])),
        draw(st.sampled_from([(), ("192.0.2.0/24", "198.51.100.7/32")])),
        draw(st.sampled_from([0, 0, 10, 20])),
    )


FRONTENDS = [
    Frontend("IPv4", "tcp", 80, "10.96.0.1"),
    Frontend("IPv4", "udp", 53, "10.96.0.1"),
    Frontend("IPv4", "tcp", 80, "10.96.0.2"),
    Frontend("IPv4", "tcp", 30080),
]
batches = st.lists(
    st.dictionaries(st.sampled_from(FRONTENDS), st.none() | behind(), max_size=4), min_size=1, max_size=12
)


@given(batches)
def test_maps_after_changes_equal_those_computed_afresh(batches: list[dict[Frontend, Behind | None]]) -> None:
    kernel, table = Kernel(), ServiceTable(SHAPE)
    kernel.run(table.whole())
    wanted: dict[Frontend, Behind] = {}
    for batch in batches:
        kernel.run(table.change(batch)[0])
        wanted = {key: one for key, one in {**wanted, **batch}.items() if one is not None}
    afresh, kernel_of_afresh = ServiceTable(SHAPE), Kernel()
    afresh.change(wanted)
    kernel_of_afresh.run(afresh.whole())
    assert kernel.seen() == kernel_of_afresh.seen()
    kernel.run(table.whole())
    assert kernel.seen() == kernel_of_afresh.seen()


def leading_to(*backends: tuple[str, int]) -> Behind:
    return Behind(("ns", "svc"), "", "cluster", backends, refusal="" if backends else "reject")


def test_a_change_of_one_among_many_endpoints_takes_few_elements() -> None:
    many = [(f"10.64.{n // 250}.{n % 250}", 8080) for n in range(1000)]
    kernel, table = Kernel(), ServiceTable(SHAPE)
    kernel.run(table.whole() + table.change({FRONTENDS[0]: leading_to(*many)})[0])
    for wanted, most in (
        # One of these is for the chain of so many endpoints, which there is from now on.
        (many[:500] + many[501:], 6),
        (many, 3),
        (many[:500] + many[501:], 5),
        (many, 3),
        ([*many[:7], ("10.0.0.1", 1), *many[8:]], 2),
    ):
        assert kernel.run(table.change({FRONTENDS[0]: leading_to(*wanted)})[0]) <= most
    assert table.change({FRONTENDS[0]: leading_to(*reversed(wanted))}) == ("", [])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_other_numbers_of_endpoints_change_no_verdict(numbers: list[int]) -> None:
    """The kernel would follow all those of the table again, which takes the longer the more services there
    are."""
    wanted = [{one: leading_to(*BACKENDS[:number]) for one in FRONTENDS[:3]} for number in numbers]
    table = ServiceTable(SHAPE)
    for known in range(4):
        table.change({FRONTENDS[0]: leading_to(*BACKENDS[:known])})
    script = "".join(table.change(one)[0] for one in wanted)
    assert "goto" not in script
    assert "rule" not in script


def test_what_datagrams_go_on_to_is_forgotten_once_it_is_gone() -> None:
    """Connection tracking would send them to endpoints that are gone or, if there were none, nowhere."""
    table, udp = ServiceTable(SHAPE), FRONTENDS[1]

    def stale(*backends: tuple[str, int]) -> list[tuple[set[tuple[str, int]], bool]]:
        found = table.change({udp: leading_to(*backends)})[1]
        return [(set(one.backends), one.whole) for one in found]

    one, two = BACKENDS[:2]
    assert stale(one) == [({one}, True)]
    assert stale(one, two) == []
    assert stale(two) == [({one}, False)]
    assert stale() == [({two}, False)]
    assert stale(one) == [({one}, True)]
    assert table.change({udp: None})[1][0].backends == {one}
    assert table.change({FRONTENDS[0]: leading_to(one)})[1] == []
