"""R-SYS-1: options from query parameters."""

import pytest

from podling.apiserver.request.request import parse_query
from podling.apiserver.verbs.options import field_validation, is_dry_run, options
from podling.model.errors import StatusError
from podling.model.types.meta import DeleteOptions, ListOptions, PodExecOptions, PodPortForwardOptions

READ = [
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
    ("ports=80&ports=443", PodPortForwardOptions(ports=[80, 443])),
]


@pytest.mark.parametrize(("query", "expected"), READ)
def test_parameters(query: str, expected: object) -> None:
    assert options(parse_query(query), type(expected)) == expected


@pytest.mark.parametrize(
    "query", ["limit=x", "timeoutSeconds=", "limit=1.5", f"limit={1 << 63}", "limit=" + "9" * 5000]
)
def test_a_number_that_is_none(query: str) -> None:
    with pytest.raises(StatusError) as raised:
        options(parse_query(query), ListOptions)
    assert raised.value.code == 400


def test_dry_run_is_all_or_an_error() -> None:
    assert is_dry_run(["All"], "CreateOptions") and not is_dry_run([], "CreateOptions")
    with pytest.raises(StatusError) as raised:
        is_dry_run(["Some"], "CreateOptions")
    assert raised.value.message == (
        'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: "Some": supported values: "All"'
    )


def test_field_validation_warns_unless_told_otherwise() -> None:
    assert field_validation({}, "CreateOptions") == "Warn"
    assert field_validation(parse_query("fieldValidation=Strict"), "CreateOptions") == "Strict"
    with pytest.raises(StatusError) as raised:
        field_validation(parse_query("fieldValidation=Maybe"), "CreateOptions")
    assert raised.value.code == 422
