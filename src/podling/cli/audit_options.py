"""The options of the audit log: kube-apiserver's, refused in its words."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import click

from podling.cli.options import FILE, Command, Duration, together
from podling.model.errors import joined
from podling.model.rules.audit_modes import BATCH, MODES

_LIMITS = (
    ("maxage", "max_age_days", 366, "DAYS", "Remove rotated audit logs that are older; 0 keeps them."),
    (
        "maxbackup",
        "max_backups",
        100,
        "NUMBER",
        "Remove the oldest rotated audit logs beyond so many; 0 keeps them.",
    ),
    ("maxsize", "max_size_mib", 100, "MEGABYTES", "Rotate the audit log before it is longer; 0 never does."),
)
_SINKS: tuple[tuple[str, str, Any, Any, str], ...] = (
    ("batch-buffer-size", "buffer_size", 10_000, 10_000, "Events that wait for it; those beyond are lost."),
    ("batch-max-size", "max_size", 1, 400, "Events that are written or sent at a time."),
    ("batch-max-wait", "max_wait", "0s", "30s", "How long an event waits for others to go with."),
    ("batch-throttle-enable", "throttles", False, True, "Whether batches are held to the next two."),
    ("batch-throttle-qps", "qps", 0.0, 10.0, "Batches a second."),
    ("batch-throttle-burst", "burst", 0, 15, "Batches at once after a while without."),
    ("truncate-enabled", "truncates", False, False, "Whether events and batches are held to the next two."),
    ("truncate-max-batch-size", "longest_batch", 10_485_760, 10_485_760, "Bytes of a batch."),
    (
        "truncate-max-event-size",
        "longest_event",
        102_400,
        102_400,
        "Bytes of an event that has its bodies.",
    ),
)
"""Option, name, and its default for the file and the webhook; for the webhook the name begins with it. The
first are for the mode `batch`."""
_FILE_OPTIONS: tuple[tuple[str, str, Any, str], ...] = (
    ("compress", "compress", False, "Compress rotated audit logs."),
    *((option, name, default, text) for option, name, default, _, text in _SINKS),
)
_WEBHOOK: tuple[tuple[str, str, Any, str], ...] = (
    ("initial-backoff", "webhook_initial_backoff", "10s", "How long after a failure it is tried again."),
    *((option, f"webhook_{name}", default, text) for option, name, _, default, text in _SINKS),
)
_MODES = (
    ("log", "mode", None, "  [default: requests do not wait, and nothing is lost]"),
    ("webhook", "webhook_mode", BATCH, f"  [default: {BATCH}]"),
)
_DURATION = Duration()
_SWITCH: dict[str, Any] = {"is_flag": False, "flag_value": True}
_METAVARS = {str: "DURATION", int: "NUMBER", float: "NUMBER", bool: "true|false"}
AUDIT = (
    click.option(
        "--audit-log",
        "--audit-log-path",
        "path",
        default="",
        metavar="PATH|-|off",
        help="File of the audit log, - for standard output.  [default: audit.log in the data directory]",
    ),
    *(
        click.option(
            f"--audit-log-{limit}",
            name,
            type=click.IntRange(0),
            default=default,
            show_default=True,
            metavar=unit,
            help=text,
        )
        for limit, name, default, unit, text in _LIMITS
    ),
    click.option(
        "--audit-policy-file",
        "policy",
        type=FILE,
        help="How much of which request is recorded: a Policy of audit.k8s.io/v1.  [default: podling's own]",
    ),
    click.option(
        "--audit-webhook-config-file",
        "webhook",
        type=FILE,
        help="Send events to the server of this kubeconfig, too.",
    ),
    *(
        click.option(
            f"--audit-{sink}-mode",
            name,
            type=click.Choice(MODES),
            default=default,
            help=f"Whether requests wait until their events are kept, and are refused if not.{text}",
        )
        for sink, name, default, text in _MODES
    ),
    *(
        click.option(
            f"--audit-{sink}-{option}",
            name,
            type=_DURATION if isinstance(default, str) else type(default),
            default=default,
            show_default=default is not False,
            metavar=_METAVARS[type(default)],
            help=text,
            # Without a value it is switched on.
            **(_SWITCH if default is False else {}),
        )
        for sink, rows in (("log", _FILE_OPTIONS), ("webhook", _WEBHOOK))
        for option, name, default, text in rows
    ),
)
AUDIT_NAMES = (
    *(name for _, name, *_ in _MODES),
    "path",
    *(name for _, name, *_ in _LIMITS),
    "policy",
    "webhook",
    *(name for _, name, *_ in (*_FILE_OPTIONS, *_WEBHOOK)),
)


def audit(command: Command) -> Command:
    """All options of the audit log, passed to the command together as `audit`, the arguments of
    `AuditOptions`."""

    @functools.wraps(command)
    def checked(*, audit: dict[str, Any], **given: Any) -> Any:
        if faults := list(_audit_faults(audit)):
            raise click.UsageError(joined(faults))
        return command(audit=audit, **given)

    return together(checked, "audit", AUDIT, AUDIT_NAMES)


def _audit_faults(audit: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with sizes that count, in Kubernetes' words: of each group the first."""
    for sink, is_on, prefix in (
        ("log", audit["path"] != "off", ""),
        ("webhook", audit["webhook"], "webhook_"),
    ):
        truncates, batch, event = (
            audit[prefix + name] for name in ("truncates", "longest_batch", "longest_event")
        )
        sizes: list[tuple[str, float]] = []
        if audit[prefix + "mode"] == BATCH:
            named = [("buffer size", "buffer_size"), ("max batch size", "max_size")]
            if audit[prefix + "throttles"]:
                named += ("throttle QPS", "qps"), ("throttle burst", "burst")
            sizes = [(what, audit[prefix + name]) for what, name in named]
        if not is_on:
            continue
        for name, size in sizes:
            if size <= 0:
                yield f"invalid audit batch {sink} {name} {size:g}, must be a positive number"
                break
        if not truncates:
            continue
        if event <= 0:
            yield f"invalid audit truncate {sink} max event size {event}, must be a positive number"
        elif batch < event:
            why = f"must be greater than max event size ({event})"
            yield f"invalid audit truncate {sink} max batch size {batch}, {why}"
