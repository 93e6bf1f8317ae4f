"""The feature gates: a table of every switch podling has, and `Gates`, which of them are on.

The table has a gate as soon as podling reads it. Features that Kubernetes has made generally available are on
by default; designs that Kubernetes considered and did not take are off. Pure: code that depends on a gate is
given the `Gates` in force.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

STAGES = ("ALPHA", "BETA", "GA")


_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


class Gate(msgspec.Struct, frozen=True):
    """A feature gate. `requirement` is the number in docs/requirements.md, `summary` says what the gate
    switches on."""

    name: str
    stage: str
    default: bool
    requirement: str
    summary: str


GATES: Mapping[str, Gate] = {
    gate.name: gate
    for gate in (
        Gate("ContainerStopSignals", "ALPHA", False, "R-SYS-2", "a container says how it is told to stop"),
        Gate("ContainerVolumes", "ALPHA", False, "R-VOL-1", "a container may initialize a volume"),
        Gate("DebugSubresource", "ALPHA", False, "R-DBG-1", "pods/debug creates and stops debug containers"),
        Gate("EphemeralContainerRemoval", "ALPHA", False, "R-EPH-11", "ephemeral containers may be removed"),
        Gate("EphemeralContainers", "GA", True, "R-EPH-8", "containers may be added to a running pod"),
        Gate("ExecEphemeralContainer", "ALPHA", False, "R-DBG-2", "pods/exec may create a container"),
        Gate("ImageVolume", "GA", True, "R-VOL-2", "an image may be mounted as a volume"),
        Gate("InitContainerImageRestart", "BETA", True, "R-INIT-4", "a changed init image runs all again"),
        Gate("InitContainerLivenessProbe", "ALPHA", False, "R-INIT-6", "init containers may have one"),
        Gate(
            "KubeletEnsureSecretPulledImages",
            "BETA",
            True,
            "R-SYS-2",
            "an image pulled with a secret is only for pods that have it",
        ),
        Gate("InPlacePodVerticalScaling", "GA", True, "R-SYS-5", "a running pod's resources may change"),
    )
}


class Gates(msgspec.Struct, frozen=True):
    """The gates in force, made of those that differ from their defaults. Raises ValueError, in Kubernetes'
    words, for a gate that does not exist."""

    changed: Mapping[str, bool] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.changed:
            if name not in GATES:
                raise ValueError(f"unrecognized feature gate: {name}")

    def enabled(self, name: str) -> bool:
        """Raises KeyError for a name that is not a gate: that is a bug, not a user's mistake."""
        gate = GATES[name]
        return self.changed.get(name, gate.default)

    @classmethod
    def parse(cls, text: str) -> Gates:
        """The gates of `--feature-gates A=true,B=false`. If a gate is named twice the last one counts. Raises
        ValueError in the words of Kubernetes' flag."""
        changed: dict[str, bool] = {}
        for pair in filter(None, (word.strip() for word in text.split(","))):
            name, separator, value = (part.strip() for part in pair.partition("="))
            if not separator:
                raise ValueError(f"missing bool value for {name}")
            if value not in _BOOLEANS:
                why = f'strconv.ParseBool: parsing "{value}": invalid syntax'
                raise ValueError(f"invalid value of {name}={value}, err: {why}")
            changed[name] = _BOOLEANS[value]
        return cls(changed)


DEFAULT_GATES = Gates()
