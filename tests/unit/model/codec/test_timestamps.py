"""Times in a request are checked, and kept as Kubernetes keeps them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import NoneType

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import podling
from podling.model.codec import json
from podling.model.codec.fields import FieldInfo, Part, fields_of
from podling.model.errors import StatusError
from podling.model.time import LAYOUTS, TimeError, settled
from podling.model.types.coordination import Lease
from podling.model.types.pod import Pod
from podling.model.types.policy import PodDisruptionBudget

DATE_TIME = [
    ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
    ("2026-01-02T05:04:05+02:00", "2026-01-02T03:04:05Z"),
    ("2026-01-02T03:04:05.999Z", "2026-01-02T03:04:05Z"),
]


@pytest.mark.parametrize(("sent", "kept"), DATE_TIME)
def test_a_time_is_kept_in_utc_and_whole_seconds(sent: str, kept: str) -> None:
    assert settled(sent, "date-time") == kept


def test_a_micro_time_has_six_digits() -> None:
    assert settled("2026-01-02T05:04:05.000006+02:00", "micro-time") == "2026-01-02T03:04:05.000006Z"
    with pytest.raises(TimeError, match=r'cannot parse "Z" as ".000000"'):
        settled("2026-01-02T03:04:05Z", "micro-time")


REFUSED = [
    ("soon", ' as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"'),
    ("2026-01-02", ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'),
    ("2026-01-02T03:04:05", ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"'),
    ("2026-13-02T03:04:05Z", ": month must be in 1..12"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_is_no_time_is_refused(text: str, why: str) -> None:
    with pytest.raises(TimeError) as refused:
        settled(text, "date-time")
    assert str(refused.value).startswith(f'parsing time "{text}"')
    assert str(refused.value).endswith(why)


def test_times_are_found_wherever_they_are() -> None:
    sent = (
        b'{"metadata":{"managedFields":[{"time":"2026-01-02T05:00:00+02:00"}]},"status":{"containerStatuses":'
        b'[{"lastState":{"terminated":{"finishedAt":"2026-01-02T05:00:00+02:00"}}}]}}'
    )
    pod = json.decode_sent(sent, Pod)
    assert pod.metadata.managed_fields[0].time == "2026-01-02T03:00:00Z"
    terminated = pod.status.container_statuses[0].last_state.terminated
    assert terminated is not None
    assert terminated.finished_at == "2026-01-02T03:00:00Z"


def test_times_in_a_map() -> None:
    sent = b'{"status":{"disruptedPods":{"p":"2026-01-02T05:00:00+02:00"}}}'
    budget = json.decode_sent(sent, PodDisruptionBudget)
    assert budget.status.disrupted_pods == {"p": "2026-01-02T03:00:00Z"}


@pytest.mark.parametrize(
    "spelling",
    ['{"status":{"disruptedPods":{"p":null}}}', '{"kind":null,"status":{"disruptedPods":{"p":null}}}'],
)
def test_a_map_of_times_keeps_null(spelling: str) -> None:
    """Go writes and reads its zero time so, here as in a field."""
    budget = json.decode(spelling.encode(), PodDisruptionBudget)
    assert budget.status.disrupted_pods == {"p": None}
    assert b'"disruptedPods":{"p":null}' in json.encode(budget)


def test_a_bad_time_is_a_bad_request() -> None:
    with pytest.raises(StatusError) as refused:
        json.decode_sent(b'{"spec":{"renewTime":"soon"}}', Lease)
    assert refused.value.code == 400
    assert refused.value.message.startswith(
        'Lease in version "v1" cannot be handled as a Lease: parsing time "soon"'
    )


@given(st.text(max_size=30) | st.from_regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", fullmatch=True))
def test_only_time_errors_escape(text: str) -> None:
    try:
        kept = settled(text, "date-time")
    except TimeError:
        return
    assert settled(kept, "date-time") == kept


def api_types(above: type[msgspec.Struct] = Part) -> Iterator[type[msgspec.Struct]]:
    """All of podling's, those of the kubelet's own pages too."""
    for type_ in above.__subclasses__():
        yield type_
        yield from api_types(type_)


for module in pkgutil.walk_packages(podling.__path__, "podling."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
TIMED = [
    (type_, field)
    for type_ in api_types()
    if type_.__module__.startswith("podling.")
    for field in fields_of(type_).values()
    if field.format in LAYOUTS and field.type is str
]
every_timed = pytest.mark.parametrize(
    ("type_", "field"), TIMED, ids=[f"{type_.__name__}.{field.wire}" for type_, field in TIMED]
)


@every_timed
def test_an_unset_time_is_null_or_nothing(type_: type[msgspec.Struct], field: FieldInfo) -> None:
    """Go's decoder refuses `""`, so no body podling sends or answers may say it."""
    said = next(f for f in msgspec.structs.fields(type_) if f.name == field.attribute)
    if said.default is msgspec.NODEFAULT:
        # Null is written; without any default nobody can forget to set it.
        assert said.default_factory in (msgspec.NODEFAULT, NoneType)
    else:
        assert said.default == "" and type_.__struct_config__.omit_defaults


GO_WRITES_NULL = {
    "APIServiceCondition.lastTransitionTime",
    "CustomResourceDefinitionCondition.lastTransitionTime",
    "CertificateSigningRequestCondition.lastTransitionTime",
    "CertificateSigningRequestCondition.lastUpdateTime",
    "Condition.lastTransitionTime",
    "ContainerStateRunning.startedAt",
    "ContainerStateTerminated.finishedAt",
    "ContainerStateTerminated.startedAt",
    "DaemonSetCondition.lastTransitionTime",
    "DeploymentCondition.lastTransitionTime",
    "DeploymentCondition.lastUpdateTime",
    "NodeMetrics.timestamp",
    "PodMetrics.timestamp",
    "Event.eventTime",
    "Event.firstTimestamp",
    "Event.lastTimestamp",
    "EventSeries.lastObservedTime",
    "EventsEvent.deprecatedFirstTimestamp",
    "EventsEvent.deprecatedLastTimestamp",
    "EventsEvent.eventTime",
    "EventsSeries.lastObservedTime",
    "FlowSchemaCondition.lastTransitionTime",
    "HorizontalPodAutoscalerCondition.lastTransitionTime",
    "JobCondition.lastProbeTime",
    "JobCondition.lastTransitionTime",
    "NamespaceCondition.lastTransitionTime",
    "NodeCondition.lastHeartbeatTime",
    "NodeCondition.lastTransitionTime",
    "PersistentVolumeClaimCondition.lastProbeTime",
    "PersistentVolumeClaimCondition.lastTransitionTime",
    "PodCondition.lastProbeTime",
    "PodCondition.lastTransitionTime",
    "PriorityLevelConfigurationCondition.lastTransitionTime",
    "ReplicaSetCondition.lastTransitionTime",
    "ReplicationControllerCondition.lastTransitionTime",
    "StatefulSetCondition.lastTransitionTime",
    "TokenRequestStatus.expirationTimestamp",
    "VolumeError.time",
}


def test_null_is_written_where_go_writes_it() -> None:
    written = {
        f"{type_.__name__}.{field.wire}"
        for type_, field in TIMED
        if type_.__module__.startswith("podling.model.") and json.to_data(type_()).get(field.wire, "") is None
    }
    assert written == GO_WRITES_NULL


@every_timed
def test_the_empty_string_is_no_time(type_: type[msgspec.Struct], field: FieldInfo) -> None:
    with pytest.raises(StatusError, match=f'parsing time "" as "{LAYOUTS[field.format]}": cannot parse ""'):
        json.decode(json.encode({field.wire: ""}), type_)
