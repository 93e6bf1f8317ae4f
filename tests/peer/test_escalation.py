"""Issue 13, the proof: attempts at more rights are refused by both servers alike, and podling's audit log,
which nobody configured, tells of each who tried it, and with which code it was refused."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import pytest

from peer.escalations import (
    ATTEMPTS,
    BINDINGS,
    GROUP,
    NODES,
    PEOPLE,
    ROLES,
    ROLES_HERE,
    TOKENS,
    WORLD,
    Attempt,
    Side,
    make_eve,
)
from peer.server import Answer, Server
from podling.apiserver.authn.tokens import SigningKey
from podling.machine.pki import Authority

LOOKS = 500


class Told(NamedTuple):
    theirs: Mapping[str, tuple[int, str]]
    """Attempt → code and message of kube-apiserver."""
    ours: Mapping[str, tuple[int, str]]
    recorded: Mapping[str, Any]
    """Attempt → its event in podling's audit log."""


@pytest.fixture(scope="module")
def told(kubernetes: Server, podling: Server) -> Iterator[Told]:
    made = [made_at(server) for server in (kubernetes, podling)]
    theirs, ours = (answers(server) for server in (kubernetes, podling))
    yield Told(theirs, ours, recorded(podling))
    for server, paths in zip((kubernetes, podling), made, strict=True):
        for path in reversed(paths):
            server.ask("DELETE", path, {"gracePeriodSeconds": 0})


def made_at(server: Server) -> list[str]:
    """The world and the roles of people; where they are."""
    make_eve(server)
    made = [f"{ROLES}/authz-eve", f"{BINDINGS}/authz-eve", f"{ROLES_HERE}/authz-strong"]

    def make(path: str, body: Any) -> None:
        said = server.ask("POST", path, body)
        assert said.code in (201, 409), (path, said.body)
        made.append(f"{path}/{body['metadata']['name']}")

    for who, rules in PEOPLE.items():
        meta = {"metadata": {"name": f"escalations-{who}"}}
        ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": f"escalations-{who}"}
        subject = {"apiGroup": GROUP, "kind": "Group", "name": who}
        make(ROLES, {**meta, "rules": rules})
        make(BINDINGS, {**meta, "roleRef": ref, "subjects": [subject]})
    for path, body in WORLD:
        make(path, body)
    return made


def answers(server: Server) -> Mapping[str, tuple[int, str]]:
    """What each attempt is told, by the credentials of who tries."""
    key = SigningKey.of_pem((server.kubeconfig.parent / "pki/service-accounts.key").read_bytes())
    side, pki = Side(server, key), server.ca.parent
    said: dict[str, tuple[int, str]] = {}
    tokens = {name: token(side) for name, token in TOKENS.items()}
    with ExitStack() as stack:
        askings = {}
        for name, attempt in ATTEMPTS.items():
            who = attempt.who
            if who not in askings:
                tls = ssl.create_default_context(cafile=str(server.ca))
                if who and who not in tokens:
                    user, *groups = NODES.get(who, (who, who))
                    pair = Authority(pki, datetime.now(UTC)).client(f"trying-{who}", user, groups)
                    tls.load_cert_chain(pair.certificate, pair.key)
                askings[who] = stack.enter_context(msgspec.structs.replace(server, tls=tls).asking())
            shown = {"Authorization": f"Bearer {tokens[who]}"} if who in tokens else {}
            said[name] = gist(
                askings[who].ask(
                    attempt.method,
                    attempt.target,
                    attempt.body,
                    **{**shown, **attempt.headers, "Audit_ID": audit_id(name)},
                )
            )
    return said


def audit_id(name: str) -> str:
    return f"escalation-{[*ATTEMPTS].index(name)}"


def gist(answer: Answer) -> tuple[int, str]:
    """The code and why, without the comparison by which Go shows what of a pod may not change."""
    body = answer.body
    why = body.get("message", "") if isinstance(body, dict) else str(body or "")
    return answer.code, why.partition("\n")[0] if answer.code == 422 else why


def recorded(server: Server) -> Mapping[str, Any]:
    log, wanted = server.kubeconfig.parent / "audit.log", {audit_id(name): name for name in ATTEMPTS}
    found: dict[str, Any] = {}
    for _ in range(LOOKS):
        lines = log.read_bytes().splitlines(keepends=True)
        events = [json.loads(line) for line in lines if line.endswith(b"\n")]
        found = {wanted[one["auditID"]]: one for one in events if one["auditID"] in wanted}
        if len(found) == len(wanted):
            break
        # Whoever answers has had time to write.
        server.ask("GET", "/readyz")
    return found


def test_there_are_enough_of_them() -> None:
    assert len(ATTEMPTS) >= 200


@pytest.mark.parametrize("name", ATTEMPTS)
def test_an_attempt_at_more_rights_is_refused_and_recorded(told: Told, name: str) -> None:
    attempt = ATTEMPTS[name]
    assert told.ours[name] == told.theirs[name]
    assert told.ours[name][0] == attempt.code
    event = told.recorded[name]
    assert event["responseStatus"]["code"] == attempt.code
    assert event["user"].get("username", "") == user_of(attempt)


def user_of(attempt: Attempt) -> str:
    """As whom the server knows who tries; nobody if it knows nobody."""
    if attempt.code == 401:
        return ""
    if attempt.who in TOKENS:
        return "system:serviceaccount:escalations:own"
    return NODES.get(attempt.who, (attempt.who or "system:anonymous",))[0]
