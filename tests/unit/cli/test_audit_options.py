"""The options of the audit log, refused in kube-apiserver's words (`tests/peer/test_audit.py` asks it)."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from podling.assemble.settle import AuditOptions
from podling.cli.audit_options import audit


@click.command()
@audit
def told(audit: dict[str, Any]) -> None:
    click.echo(repr(AuditOptions(**audit)))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", AuditOptions()),
        ("--audit-log-compress", AuditOptions(compress=True)),
        ("--audit-log-compress=true", AuditOptions(compress=True)),
        ("--audit-log-truncate-enabled --audit-log=-", AuditOptions(path="-", truncates=True)),
        ("--audit-webhook-batch-throttle-enable=false", AuditOptions(webhook_throttles=False)),
        ("--audit-log-mode=blocking-strict", AuditOptions(mode="blocking-strict")),
        ("--audit-log-mode=batch --audit-log-batch-max-wait=1s", AuditOptions(mode="batch", max_wait=1.0)),
        # What does not count is not looked at.
        ("--audit-log-batch-max-size=0", AuditOptions(max_size=0)),
        ("--audit-log-truncate-max-event-size=0", AuditOptions(longest_event=0)),
        ("--audit-webhook-batch-max-size=0", AuditOptions(webhook_max_size=0)),
    ],
)
def test_what_is_given_is_what_the_server_is_told(given: str, expected: AuditOptions) -> None:
    assert CliRunner().invoke(told, given.split()).output == f"{expected!r}\n"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            "--audit-log-truncate-enabled --audit-log-truncate-max-batch-size=10",
            "invalid audit truncate log max batch size 10, must be greater than max event size (102400)",
        ),
        (
            "--audit-log-mode=batch --audit-log-batch-throttle-enable",
            "invalid audit batch log throttle QPS 0, must be a positive number",
        ),
        (
            "--audit-log-mode=batch --audit-log-batch-buffer-size=0",
            "invalid audit batch log buffer size 0, must be a positive number",
        ),
        (
            "--audit-webhook-batch-throttle-burst=0",
            "invalid audit batch webhook throttle burst 0, must be a positive number",
        ),
        (
            "--audit-webhook-batch-buffer-size=0 --audit-webhook-batch-max-size=0 "
            "--audit-webhook-truncate-enabled --audit-webhook-truncate-max-event-size=-1",
            "[invalid audit batch webhook buffer size 0, must be a positive number, "
            "invalid audit truncate webhook max event size -1, must be a positive number]",
        ),
    ],
)
def test_what_cannot_be(given: str, why: str, tmp_path: Any) -> None:
    (tmp_path / "config").touch()
    said = CliRunner().invoke(told, [f"--audit-webhook-config-file={tmp_path}/config", *given.split()])
    assert said.exit_code == 2
    assert said.output.endswith(f"Error: {why}\n")
