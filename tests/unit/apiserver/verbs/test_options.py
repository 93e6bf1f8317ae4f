"""R-SYS-1: options from query parameters, and which of a list or a watch contradict each other."""

import msgspec
import pytest

from podling.apiserver.request.request import parse_query
from podling.apiserver.verbs.options import (
    check_list,
    check_watch,
    check_write,
    field_validation,
    options,
    revision,
)
from podling.model.errors import StatusError
from podling.model.types.meta import DeleteOptions, ListOptions, PodExecOptions, PodPortForwardOptions

READ: list[tuple[str, msgspec.Struct]] = [
    ("", ListOptions()),
    (
        "labelSelector=a%3Db&limit=5&continue=x&unknown=1",
        ListOptions(label_selector="a=b", limit=5, continue_="x"),
    ),
    ("watch&timeoutSeconds=30", ListOptions(watch=True, timeout_seconds=30)),
    ("watch=0&sendInitialEvents=true", ListOptions(send_initial_events=True)),
    (
        "gracePeriodSeconds=0&propagationPolicy=Orphan",
        DeleteOptions(grace_period_seconds=0, propagation_policy="Orphan"),
    ),
    ("command=ls&command=-l&stdin=true", PodExecOptions(command=["ls", "-l"], stdin=True)),
    ("preconditions=x", DeleteOptions()),
    ("ports=80&ports=443", PodPortForwardOptions(ports=[80, 443])),
]
GOOD_LISTS = [
    ListOptions(),
    ListOptions(resource_version="0"),
    ListOptions(resource_version="5", resource_version_match="Exact"),
    ListOptions(resource_version="0", resource_version_match="NotOlderThan"),
    ListOptions(continue_="x", limit=5),
]
BAD_LISTS = [
    (ListOptions(resource_version_match="Exact"), "forbidden unless resourceVersion is provided"),
    (ListOptions(resource_version="0", resource_version_match="Exact"), 'forbidden for resourceVersion "0"'),
    (ListOptions(resource_version="5", resource_version_match="Near"), 'Unsupported value: "Near"'),
    (ListOptions(continue_="x", resource_version_match="Exact"), "when continue is provided"),
    (ListOptions(continue_="x", resource_version="5"), "not allowed when using continue"),
    (ListOptions(send_initial_events=True), "sendInitialEvents is forbidden for list"),
]
BAD_WATCHES = [
    (ListOptions(resource_version_match="Exact"), "unless sendInitialEvents is provided"),
    (ListOptions(send_initial_events=True), "requires setting resourceVersionMatch to NotOlderThan"),
]


@pytest.mark.parametrize(("query", "expected"), READ)
def test_parameters(query: str, expected: msgspec.Struct) -> None:
    assert options(parse_query(query), type(expected)) == expected


@pytest.mark.parametrize(
    "query", ["limit=x", "timeoutSeconds=", "limit=1.5", f"limit={1 << 63}", "limit=" + "9" * 5000]
)
def test_a_number_that_is_none(query: str) -> None:
    with pytest.raises(StatusError) as raised:
        options(parse_query(query), ListOptions)
    assert raised.value.code == 400


def test_dry_run_is_all_or_an_error() -> None:
    assert check_write({"dryRun": ["All"]}, "CreateOptions") and not check_write({}, "CreateOptions")
    with pytest.raises(StatusError) as raised:
        check_write({"dryRun": ["Some"]}, "CreateOptions")
    assert raised.value.message == (
        'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: '
        'supported values: "All"'
    )


def test_field_validation_warns_unless_told_otherwise() -> None:
    assert field_validation({}) == "Warn"
    assert field_validation(parse_query("fieldValidation=Strict")) == "Strict"


def test_every_fault_of_the_options_of_a_write_is_told() -> None:
    query = parse_query("fieldManager=a%07&dryRun=Some&fieldValidation=Maybe&force=1")
    with pytest.raises(StatusError) as raised:
        check_write(query, "PatchOptions", applies=False)
    assert [cause.field for cause in raised.value.causes] == [
        "force",
        "fieldManager",
        "dryRun",
        "fieldValidation",
    ]
    with pytest.raises(StatusError, match="fieldManager: Required value: is required for apply patch"):
        check_write({}, "PatchOptions", applies=True)


@pytest.mark.parametrize("wanted", GOOD_LISTS)
def test_good_lists(wanted: ListOptions) -> None:
    check_list(wanted)


@pytest.mark.parametrize(("wanted", "message"), BAD_LISTS)
def test_bad_lists(wanted: ListOptions, message: str) -> None:
    with pytest.raises(StatusError, match=message):
        check_list(wanted)


@pytest.mark.parametrize(("wanted", "message"), BAD_WATCHES)
def test_bad_watches(wanted: ListOptions, message: str) -> None:
    with pytest.raises(StatusError, match=message):
        check_watch(wanted)


def test_good_watches() -> None:
    check_watch(ListOptions(resource_version="5"))
    check_watch(ListOptions(send_initial_events=True, resource_version_match="NotOlderThan"))


@pytest.mark.parametrize(("text", "number"), [("", 0), ("0", 0), ("17", 17)])
def test_revisions(text: str, number: int) -> None:
    assert revision(text) == number


@pytest.mark.parametrize("text", ["-1", "abc", "1.5", "²", str(1 << 64), "9" * 5000])
def test_no_revisions(text: str) -> None:
    with pytest.raises(StatusError) as raised:
        revision(text)
    assert raised.value.code == 400
