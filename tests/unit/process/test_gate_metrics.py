"""R-EPH-14: that a gate is off on one side is seen in its metrics."""

from __future__ import annotations

from podling.model.gates import GATES, Gates
from podling.process.metrics import gate_metrics


def test_every_gate_is_told_with_its_stage() -> None:
    (family,) = gate_metrics(Gates({"EphemeralContainers": False, "ContainerVolumes": True}))
    told = {sample.labels["name"]: (sample.labels["stage"], sample.value) for sample in family.samples}
    assert family.name == "kubernetes_feature_enabled"
    assert told.keys() == GATES.keys()
    assert told["EphemeralContainers"] == ("", 0)
    assert told["ContainerVolumes"] == ("ALPHA", 1)
    assert told["InitContainerImageRestart"] == ("BETA", 1)
