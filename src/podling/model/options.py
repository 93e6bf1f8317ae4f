"""The options of requests: sent as a body (DeleteOptions) or as query parameters (the others)."""

from __future__ import annotations

from typing import ClassVar

from podling.model.base import Object, Part
from podling.model.fields import Int32, Int64, Time


class Preconditions(Part):
    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Object):
    KIND: ClassVar[str] = "DeleteOptions"
    API_VERSION: ClassVar[str] = "v1"

    grace_period_seconds: Int64 | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: list[str] = []
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None


class CreateOptions(Part):
    dry_run: list[str] = []
    field_manager: str = ""
    field_validation: str = ""
    pretty: str = ""


class UpdateOptions(Part):
    dry_run: list[str] = []
    field_manager: str = ""
    field_validation: str = ""
    pretty: str = ""


class PatchOptions(Part):
    dry_run: list[str] = []
    force: bool | None = None
    field_manager: str = ""
    field_validation: str = ""
    pretty: str = ""


class ListOptions(Part):
    """Also the options of a watch and of deletecollection."""

    label_selector: str = ""
    field_selector: str = ""
    watch: bool = False
    allow_watch_bookmarks: bool = False
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: Int64 | None = None
    limit: Int64 = 0
    continue_: str = ""
    send_initial_events: bool | None = None
    pretty: str = ""


class PodLogOptions(Part):
    container: str = ""
    follow: bool = False
    previous: bool = False
    since_seconds: Int64 | None = None
    since_time: Time = ""
    timestamps: bool = False
    tail_lines: Int64 | None = None
    limit_bytes: Int64 | None = None
    insecure_skip_tls_verify_backend: bool = False
    stream: str | None = None
    pretty: str = ""


class PodExecOptions(Part):
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False
    container: str = ""
    command: list[str] = []


class PodAttachOptions(Part):
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False
    container: str = ""


class PodPortForwardOptions(Part):
    ports: list[Int32] = []
