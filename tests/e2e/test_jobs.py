"""Jobs of real pods, as kubectl makes and waits for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"


def job(name: str, script: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "app", "image": BUSYBOX, "command": ["sh", "-c", script]}
    pod = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"spec": pod}, **spec},
    }


def test_kubectl_waits_for_an_indexed_job(podling: Podling, namespace: str) -> None:
    here = ("-n", namespace)
    body = job(
        "work",
        'echo "$JOB_COMPLETION_INDEX on $(hostname)"',
        completionMode="Indexed",
        completions=3,
        parallelism=2,
    )
    podling.kubectl("apply", *here, "-f", "-", input=json.dumps(body))
    podling.kubectl("wait", "--for=condition=Complete", "job/work", *here, "--timeout=60s", timeout=70)
    logs = podling.kubectl("logs", "-l", "job-name=work", *here).stdout
    assert sorted(logs.splitlines()) == [f"{index} on work-{index}" for index in range(3)]
    status = podling.get("job", "work", *here)["status"]
    assert (status["succeeded"], status["completedIndexes"]) == (3, "0-2")
    shown = podling.kubectl("get", "job", "work", *here, "--no-headers").stdout.split()
    assert shown[:3] == ["work", "Complete", "3/3"]
    podling.kubectl("delete", "job", "work", *here, "--cascade=foreground", timeout=70)
    assert podling.get("pods", *here)["items"] == []


def test_a_job_fails_after_its_limit_and_by_its_policy(podling: Podling, namespace: str) -> None:
    here = ("-n", namespace)
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    for body in (
        job("limited", "exit 3", backoffLimit=0),
        job("judged", "exit 42", podFailurePolicy={"rules": [rule]}),
    ):
        podling.kubectl("apply", *here, "-f", "-", input=json.dumps(body))
    for name, reason in (("limited", "BackoffLimitExceeded"), ("judged", "PodFailurePolicy")):
        podling.kubectl("wait", "--for=condition=Failed", f"job/{name}", *here, "--timeout=60s", timeout=70)
        status = podling.get("job", name, *here)["status"]
        assert [one["type"] for one in status["conditions"]] == ["FailureTarget", "Failed"]
        assert {one["reason"] for one in status["conditions"]} == {reason}
        assert status["failed"] == 1


def test_a_job_of_a_cron_job_is_suspended_and_goes_on(podling: Podling, namespace: str) -> None:
    here = ("-n", namespace)
    image = f"--image={BUSYBOX}"
    script = ("--", "sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait")
    podling.kubectl("create", "cronjob", "tick", *here, image, "--schedule=0 0 1 1 *", *script)
    podling.kubectl("create", "job", "now", *here, "--from=cronjob/tick")
    podling.kubectl("wait", "--for=jsonpath={.status.ready}=1", "job/now", *here, "--timeout=60s", timeout=70)
    patch = json.dumps({"spec": {"suspend": True}})
    podling.kubectl("patch", "job", "now", *here, "-p", patch)
    podling.kubectl("wait", "--for=condition=Suspended", "job/now", *here, "--timeout=60s", timeout=70)
    status = podling.get("job", "now", *here)["status"]
    assert "startTime" not in status and "failed" not in status
    podling.kubectl("delete", "cronjob", "tick", *here, "--cascade=foreground", timeout=90)
    assert podling.get("jobs", *here)["items"] == []
