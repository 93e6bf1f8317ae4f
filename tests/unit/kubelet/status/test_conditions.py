"""What others wrote of a pod's conditions stays theirs."""

from __future__ import annotations

from podling.kubelet.status.conditions import with_standing
from podling.model.types.pod import PodSpec
from podling.model.types.pod_status import PodCondition, PodStatus


def status(**conditions: str) -> PodStatus:
    """Of each condition its status, and after a blank its reason."""
    told = [(type, *text.partition(" ")[::2]) for type, text in conditions.items()]
    return PodStatus(conditions=[PodCondition(type=t, status=s, reason=r) for t, s, r in told])


def merged(old: PodStatus, new: PodStatus) -> dict[str, str]:
    result = with_standing(PodSpec(), old, new)
    return {c.type: f"{c.status} {c.reason}".strip() for c in result.conditions}


def test_a_condition_of_another_writer_is_as_the_server_has_it() -> None:
    """The kubelet's status was made before the gate's owner changed its mind."""
    old = status(Gate="False", Ready="True")
    assert merged(old, status(Gate="True", Ready="True")) == {"Gate": "False", "Ready": "True"}
    assert merged(old, status(Ready="False")) == {"Gate": "False", "Ready": "False"}


def test_one_that_another_writer_removed_does_not_come_back() -> None:
    assert merged(status(Ready="True"), status(Gate="True", Ready="True")) == {"Ready": "True"}


def test_the_kubelets_own_end_takes_the_place_of_an_earlier_one() -> None:
    own = status(DisruptionTarget="True TerminationByKubelet")
    assert merged(status(DisruptionTarget="True PreemptionByScheduler"), own) == {
        "DisruptionTarget": "True TerminationByKubelet"
    }
    assert merged(own, status(Ready="True")) == {"Ready": "True"}
