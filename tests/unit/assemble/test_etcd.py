"""What podling says of an etcd that it cannot use, and what it makes of kube-apiserver's older forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from podling.assemble.etcd import (
    FORMAT,
    cluster_fault,
    format_fault,
    newer_definition,
    open_etcd,
    plain,
    version_fault,
)
from podling.assemble.settle import EtcdOptions
from podling.cli.apiserver import apiserver
from podling.machine.start import StartError
from podling.storage.etcd.store import UnreadableError
from podling.storage.interface import Record


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--etcd-cafile", "FILE"], "--etcd-cafile, --etcd-certfile and --etcd-keyfile need --etcd-servers"),
        (
            ["--etcd-servers", "http://a", "--etcd-certfile", "FILE"],
            "--etcd-certfile and --etcd-keyfile need each other",
        ),
        (
            ["--etcd-servers", "http://a", "--encryption-provider-config", "FILE"],
            "--encryption-provider-config cannot be used with --etcd-servers",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path: Path, arguments: list[str], why: str) -> None:
    file = tmp_path / "file"
    file.touch()
    given = [str(file) if one == "FILE" else one for one in arguments]
    done = CliRunner().invoke(apiserver, ["--data-dir", str(tmp_path / "data"), *given])
    assert done.exit_code == 2
    assert why in done.output


async def test_what_is_no_url_of_an_etcd_is_named() -> None:
    with pytest.raises(StartError, match=r"--etcd-servers: 'etcd.test' is no URL of an etcd"):
        await open_etcd(EtcdOptions(servers=("etcd.test",)))


def test_protobuf_of_an_unknown_kind_is_refused_by_its_key() -> None:
    with pytest.raises(UnreadableError, match=r"/registry/a\.test/things/x"):
        plain("/registry/a.test/things/x", b"k8s\0rest")
    with pytest.raises(UnreadableError, match="/registry/pods/a/b"):
        plain("/registry/pods/a/b", b"k8s\0\xff\xff")


def test_json_is_kept_as_it_is() -> None:
    assert plain("/registry/pods/a/b", b"{}") == b"{}"


def test_what_versions_have_alike_is_put_into_each() -> None:
    column = {"name": "Size", "type": "integer", "JSONPath": ".spec.size"}
    stored: dict[str, Any] = {
        "kind": "CustomResourceDefinition",
        "spec": {
            "group": "a.test",
            "version": "v1",
            "validation": {"openAPIV3Schema": {"type": "object"}},
            "additionalPrinterColumns": [column],
            "versions": [{"name": "v1"}, {"name": "v2"}],
            "conversion": {
                "strategy": "Webhook",
                "webhookClientConfig": {"url": "u"},
                "conversionReviewVersions": [],
            },
        },
    }
    ours = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
    alike = {"schema": {"openAPIV3Schema": {"type": "object"}}, "additionalPrinterColumns": [ours]}
    assert newer_definition(stored)["spec"] == {
        "group": "a.test",
        "versions": [{**alike, "name": "v1"}, {**alike, "name": "v2"}],
        "conversion": {
            "strategy": "Webhook",
            "webhook": {"clientConfig": {"url": "u"}, "conversionReviewVersions": []},
        },
    }


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("3.4.0", ""),
        ("3.5.16", ""),
        ("3.10.1", ""),
        ("4.0.0", ""),
        ("3.3.27", "this is etcd 3.3.27; podling needs 3.4 or later"),
        ("2.9", "this is etcd 2.9; podling needs 3.4 or later"),
        ("", "this is etcd of no version; podling needs 3.4 or later"),
        ("new", "this is etcd new; podling needs 3.4 or later"),
    ],
)
def test_an_etcd_that_is_too_old_is_said(version: str, why: str) -> None:
    assert version_fault(version) == why


@pytest.mark.parametrize(("value", "is_newer"), [(None, False), (b"1", False), (b"2", True), (b"x", True)])
def test_what_a_newer_podling_has_stored_is_said(value: bytes | None, is_newer: bool) -> None:
    why = format_fault(None if value is None else Record(FORMAT, value, 7))
    assert ("a newer podling has stored this" in why) is is_newer


@pytest.mark.parametrize(
    ("known", "found", "why"),
    [
        ("", "", ""),
        ("", "a", ""),
        ("a", "a", ""),
        ("a", "b", "holds another cluster, b,"),
        ("a", "", "no cluster"),
    ],
)
def test_an_etcd_of_another_cluster_is_said(known: str, found: str, why: str) -> None:
    said = cluster_fault(known, found)
    assert why in said and bool(why) == bool(said)
