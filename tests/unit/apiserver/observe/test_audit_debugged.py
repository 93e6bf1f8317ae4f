"""R-EPH-14: the audit log answers who debugged which pod, when, with which image and rights."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from podling.apiserver.assemble import ApiServer
from podling.apiserver.kinds.kinds import kinds
from podling.apiserver.observe.audit import AuditLog
from podling.apiserver.observe.audit_debugged import debugged, profile_of, rights_of
from podling.apiserver.observe.audit_policy import DEFAULT, Recording
from podling.apiserver.observe.audit_rotation import Rotation, rotate
from podling.apiserver.request.request import User
from podling.cli.main import main
from podling.model.gates import DEFAULT_GATES
from podling.model.types.rbac import AUTHENTICATED
from unit.apiserver.observe.test_audit import Lines

if TYPE_CHECKING:
    from pathlib import Path

    from unit.apiserver.conftest import Conversation

PODS = "/api/v1/namespaces/default/pods"
EPHEMERAL = f"{PODS}/p/ephemeralcontainers"
EYE = {"name": "eye", "image": "busybox", "targetContainerName": "c", "command": ["sh"]}
PTRACE = {"securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}}
MASTERS = ("system:masters", AUTHENTICATED)


def containers(*listed: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"ephemeralContainers": listed}}


@pytest.fixture
async def log(api: Conversation) -> Lines:
    """What the audit log has of what `api` is told from now on."""
    sink = Lines()
    audit = AuditLog(Recording(DEFAULT, failures=True), [sink], api.clock)
    api.server.close()
    api.server = ApiServer.build(
        api.storage, kinds(DEFAULT_GATES), clock=api.clock, connector=api.connector, audit=audit
    )
    await api.server.start()
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert (await api.post(PODS, pod)).status == 201
    return sink


async def test_each_way_to_debug_a_pod_is_told_of(api: Conversation, log: Lines) -> None:
    api.user = User("roy", MASTERS)
    patched = await api.patch(EPHEMERAL, containers({**EYE, **PTRACE}), "strategic-merge-patch")
    assert patched.status == 200, patched.body
    step = {"op": "add", "path": "/spec/ephemeralContainers/-", "value": {**EYE, "name": "two"}}
    assert (await api.patch(EPHEMERAL, [step], "json-patch")).status == 200
    api.clock.time += timedelta(seconds=5)
    whole = (await api.get(f"{PODS}/p")).body
    whole["spec"]["ephemeralContainers"].append({**EYE, "name": "three", "image": "gdb"})
    assert (await api.put(EPHEMERAL, whole)).status == 200
    found = list(debugged(log.lines))
    assert [(one.user, one.pod, one.container, one.image) for one in found] == [
        ("roy", "p", "eye", "busybox"),
        ("roy", "p", "two", "busybox"),
        ("roy", "p", "three", "gdb"),
    ], "of a whole pod only what is new"
    assert (found[0].profile, found[0].target, found[0].command) == ("general", "c", ["sh"])
    assert found[0].allowed and found[0].time < found[2].time


async def test_what_was_refused_or_tried_is_told_of_as_that(api: Conversation, log: Lines) -> None:
    refused = await api.patch(EPHEMERAL, containers({**EYE, "name": "c"}), "strategic-merge-patch")
    assert refused.status == 422
    tried = await api.patch(f"{EPHEMERAL}?dryRun=All", containers(EYE), "strategic-merge-patch")
    assert tried.status == 200
    first, second = debugged(log.lines)
    assert (first.allowed, first.code, first.dry_run) == (False, 422, False)
    assert "Duplicate value" in first.reason
    assert (second.allowed, second.dry_run) == (True, True)


async def test_who_may_not_is_known_by_name_but_his_body_is_not(api: Conversation, log: Lines) -> None:
    api.user = User("system:serviceaccount:default:x", ("system:serviceaccounts", AUTHENTICATED))
    assert (await api.patch(EPHEMERAL, containers(EYE), "strategic-merge-patch")).status == 403
    (found,) = debugged(log.lines)
    assert (found.allowed, found.image, found.user) == (False, "(not recorded)", api.user.name)


async def test_connections_are_told_of_on_request(api: Conversation, log: Lines) -> None:
    await api.get(f"{PODS}/p/exec?command=ls&command=-l&container=c")
    assert not list(debugged(log.lines))
    (found,) = debugged(log.lines, connections=True)
    assert (found.action, found.container, found.command) == ("exec", "c", ["ls", "-l"])


async def test_a_pod_made_anew_may_be_debugged_anew(api: Conversation, log: Lines) -> None:
    for _ in range(2):
        assert (await api.patch(EPHEMERAL, containers(EYE))).status == 200
        assert (await api.delete(f"{PODS}/p?gracePeriodSeconds=0")).status == 200
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        assert (await api.post(PODS, pod)).status == 201
    assert len(list(debugged(log.lines))) == 2


async def test_no_line_has_a_secret(api: Conversation, log: Lines) -> None:
    secret = {"metadata": {"name": "s"}, "stringData": {"password": "Tr0ub4dor"}}
    assert (await api.post("/api/v1/namespaces/default/secrets", secret)).status == 201
    assert (await api.post("/api/v1/namespaces/default/serviceaccounts/default/token", {})).status == 201
    said = b"".join(log.lines)
    assert b"Tr0ub4dor" not in said and b"eyJ" not in said and b'"secrets"' in said


@pytest.mark.parametrize(
    ("rights", "told", "profile"),
    [
        ({}, "default", ""),
        ({"privileged": True}, "privileged", "sysadmin"),
        ({"capabilities": {"add": ["SYS_PTRACE"]}}, "+SYS_PTRACE", "general"),
        ({"capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}}, "+NET_ADMIN,+NET_RAW", "netadmin"),
        ({"runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}}, "-ALL,runAsNonRoot=true", ""),
        (
            {"runAsUser": 0, "seLinuxOptions": {"level": "s0"}},
            'runAsUser=0,seLinuxOptions={"level":"s0"}',
            "",
        ),
    ],
)
def test_rights_in_a_word(rights: dict[str, Any], told: str, profile: str) -> None:
    assert (rights_of(rights), profile_of(rights)) == (told, profile)


async def test_the_command_reads_the_log_and_those_before_it(
    api: Conversation, log: Lines, tmp_path: Path
) -> None:
    api.user = User("roy", MASTERS)
    file = tmp_path / "audit.log"
    for name in ("one", "two"):
        await api.patch(EPHEMERAL, containers({**EYE, "name": name, **PTRACE}), "strategic-merge-patch")
        file.write_bytes(b"\n".join([*log.lines, b'{"cut off": "resource":"pods"']))
        log.lines.clear()
        if name == "one":
            rotate(file, Rotation(), api.clock.now())
    run = CliRunner().invoke(main, ["audit", "debugged", "p", "-n", "default", "--file", str(file)])
    heads, *rows = [line.split() for line in run.output.splitlines()]
    assert heads == ["TIME", "USER", "NAMESPACE", "POD", "ACTION", "CONTAINER", "IMAGE", "RIGHTS", "ALLOWED"]
    assert [row[1:] for row in rows] == [
        ["roy", "default", "p", "debug", name, "busybox", "+SYS_PTRACE", "yes"] for name in ("one", "two")
    ]
    wide = CliRunner().invoke(main, ["audit", "debugged", "-o", "wide", "--file", str(file)])
    assert "PROFILE" in wide.output and "general" in wide.output
    shown = json.loads(
        CliRunner().invoke(main, ["audit", "debugged", "-o", "json", "--file", str(file)]).output
    )
    assert [one["container"] for one in shown] == ["one", "two"]
    assert shown[0]["securityContext"] == PTRACE["securityContext"]
    nobody = CliRunner().invoke(main, ["audit", "debugged", "-n", "other", "--file", str(file)])
    assert nobody.exit_code == 0 and "Nobody" in nobody.output


@pytest.mark.parametrize("where", ["audit.log", "gone/audit.log"])
def test_no_log_is_an_error_that_says_where_one_was_looked_for(tmp_path: Path, where: str) -> None:
    run = CliRunner().invoke(
        main, ["audit", "debugged", "--data-dir", str(tmp_path), "--file", str(tmp_path / where)]
    )
    assert run.exit_code == 1
    assert f"there is no audit log at {tmp_path / where}" in run.output and "--file" in run.output
