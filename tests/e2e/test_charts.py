"""What popular charts render is applied, upgraded, rolled back and removed, and leaves nothing."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from e2e.conftest import Podling

CHARTS = sorted((Path(__file__).parents[2] / "examples/charts").glob("*.yaml"))
ROLLED = ("Deployment", "StatefulSet", "DaemonSet")
RELEASE = "example.com/release"


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.stem)
def test_a_chart(podling: Podling, namespace: str, chart: Path) -> None:
    here = ("-n", namespace)
    rendered = chart.read_text().replace("busybox:1.36", "podling.test/busybox:1")
    first: list[dict[str, Any]] = list(yaml.safe_load_all(rendered))
    second = deepcopy(first)
    rolled = [one for one in second if one["kind"] in ROLLED]
    for one in rolled:
        one["spec"]["template"]["metadata"]["annotations"] = {RELEASE: "2"}
    for objects, release in ((first, None), (second, "2"), (first, None)):
        podling.kubectl("apply", *here, "-f", "-", input=yaml.safe_dump_all(objects))
        for one in rolled:
            what = f"{one['kind'].lower()}/{one['metadata']['name']}"
            podling.kubectl("rollout", "status", what, *here, "--timeout=90s", timeout=100)
            labels = ",".join("=".join(label) for label in one["spec"]["selector"]["matchLabels"].items())
            pods = podling.get("pods", "-l", labels, *here)["items"]
            live = [pod["metadata"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]
            assert live
            assert {meta.get("annotations", {}).get(RELEASE) for meta in live} == {release}
        for one in objects:
            if one["kind"] == "Job":
                done = ("--for=condition=Complete", f"job/{one['metadata']['name']}", "--timeout=90s")
                podling.kubectl("wait", *done, *here, timeout=100)
    made = yaml.safe_dump_all(first)
    podling.kubectl(
        "delete", *here, "-f", "-", "--cascade=foreground", "--timeout=90s", input=made, timeout=100
    )
    claims = ("--for=delete", "persistentvolumeclaims", "--all", "--timeout=60s")
    podling.kubectl("wait", *claims, *here, timeout=70)
    assert podling.get("pods", *here)["items"] == []
