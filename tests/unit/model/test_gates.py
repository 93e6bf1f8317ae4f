"""The gates in force: defaults, changes, and the refusal of names that are none."""

from __future__ import annotations

import pytest

from podling.model.gates import DEFAULT_GATES, GATES, STAGES, Gates


def test_a_gate_has_its_default_until_it_is_changed() -> None:
    assert DEFAULT_GATES.enabled("EphemeralContainers")
    assert not DEFAULT_GATES.enabled("DebugSubresource")
    changed = Gates({"DebugSubresource": True, "EphemeralContainers": False})
    assert changed.enabled("DebugSubresource")
    assert not changed.enabled("EphemeralContainers")


def test_an_unknown_gate_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="unrecognized feature gate: Ephemerals"):
        Gates({"Ephemerals": True})


@pytest.mark.parametrize("name", GATES)
def test_alpha_gates_are_off_and_others_on(name: str) -> None:
    gate = GATES[name]
    assert gate.stage in STAGES
    assert gate.default == (gate.stage != "ALPHA")
    assert gate.requirement.startswith("R-")


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("", {}),
        ("DebugSubresource=true", {"DebugSubresource": True}),
        (
            " DebugSubresource = T , EphemeralContainers=0,",
            {"DebugSubresource": True, "EphemeralContainers": False},
        ),
        ("DebugSubresource=true,DebugSubresource=False", {"DebugSubresource": False}),
    ],
)
def test_gates_are_read_as_kubernetes_reads_its_flag(text: str, changed: dict[str, bool]) -> None:
    assert Gates.parse(text).changed == changed


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Ephemerals=true", "unrecognized feature gate: Ephemerals"),
        ("DebugSubresource", "missing bool value for DebugSubresource"),
        (
            "DebugSubresource=yes",
            'invalid value of DebugSubresource=yes, err: strconv.ParseBool: parsing "yes": invalid syntax',
        ),
        ("=true", "unrecognized feature gate: "),
    ],
)
def test_what_cannot_be_read_is_refused_in_kubernetes_words(text: str, fault: str) -> None:
    with pytest.raises(ValueError) as refused:
        Gates.parse(text)
    assert str(refused.value) == fault
