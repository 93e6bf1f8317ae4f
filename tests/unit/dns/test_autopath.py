"""Pods' search paths, walked by cluster DNS: what it answers to the first question of a resolver's walk."""

from __future__ import annotations

import dns.flags
import dns.message
import dns.rcode
import pytest
from msgspec.structs import replace

from podling.dns.answers import Answer
from podling.dns.autopath import SearchingForwarder, SearchPaths
from podling.dns.responder import Responder, Unanswered
from podling.dns.server import Reply
from podling.dns.wire import LONGEST_MESSAGE, NXDOMAIN, QUESTION_NAME, RA, SERVFAIL, A, encode, record, text
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod, PodDNSConfig, PodSpec
from podling.model.types.pod_status import PodIP, PodStatus
from unit.dns.cluster import endpoint, service, slice_of, usual

CLIENT, OTHER = "10.64.0.2", "10.64.0.3"
FIRST = ".default.svc.cluster.local."


def pod(name: str = "one", address: str = CLIENT, phase: str = "Running", **spec: object) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodSpec(**{"dns_policy": "ClusterFirst", **spec}),  # type: ignore[arg-type]
        status=PodStatus(phase=phase, pod_ips=[PodIP(address)]),
    )


class Walked:
    """A cluster with a pod, and servers elsewhere that know the names of `known`."""

    def __init__(self, *pods: Pod, searches: tuple[str, ...] = ()) -> None:
        self.cluster = usual()
        self.paths = SearchPaths(self.cluster.zone.name, searches)
        for one in pods or (pod(),):
            self.paths.pod_changed(None, one)
        self.responder = Responder(self.cluster.zone, self.paths.names)
        self.known = {"example.com."}
        self.failing: set[str] = set()
        self.asked: list[str] = []

    def forward(self, asked: Unanswered, client: str, reply: Reply) -> None:
        begun = asked.begun
        name = text(begun.target if begun else asked.query.name)
        self.asked.append(name)
        if name in self.failing:
            reply(Answer(rcode=SERVFAIL, flags=RA))
        elif name not in self.known:
            reply(Answer(rcode=NXDOMAIN, flags=RA))
        elif asked.query.type == A:
            owner = begun.target if begun else QUESTION_NAME
            records = begun.records if begun else ()
            reply(Answer([*records, record(owner, A, 60, bytes((192, 0, 2, 1)))], flags=RA))
        else:
            reply(Answer(flags=RA))

    def ask(self, name: str, type_: str = "A", client: str = CLIENT) -> dns.message.Message:
        query = dns.message.make_query(name, type_)
        try:
            said = self.responder.reply(query.to_wire(), client)
        except Unanswered as asked:
            told: list[Answer] = []
            SearchingForwarder(self.cluster.zone, self.forward).ask(asked, client, told.append)
            (answer,) = told
            said = answer.reply(asked.query, LONGEST_MESSAGE)
        assert said is not None
        reply = dns.message.from_wire(said)
        assert query.is_response(reply)
        return reply

    def told(self, name: str, type_: str = "A", client: str = CLIENT) -> tuple[str, list[str]]:
        reply = self.ask(name, type_, client)
        return dns.rcode.to_text(reply.rcode()), [str(one) for one in reply.answer]


def test_a_name_outside_takes_one_question_for_each_type() -> None:
    walked = Walked()
    name = f"Example.com{FIRST}"
    answers = [f"{name} 60 IN CNAME example.com.", "example.com. 60 IN A 192.0.2.1"]
    assert walked.told(name) == ("NOERROR", answers)
    assert walked.told(name, "AAAA") == ("NOERROR", [])
    assert walked.asked == ["example.com."] * 2
    assert not walked.ask(name).flags & dns.flags.AA


def test_a_service_of_another_namespace_is_found() -> None:
    walked = Walked()
    name = f"kube-dns.kube-system{FIRST}"
    cname = f"{name} 5 IN CNAME kube-dns.kube-system.svc.cluster.local."
    assert walked.told(name) == ("NOERROR", [cname, f"{cname.split()[-1]} 5 IN A 10.96.0.10"])
    assert walked.told(name, "AAAA") == ("NOERROR", [])
    assert walked.ask(name).flags & dns.flags.AA
    assert walked.asked == []


def test_endpoints_still_take_turns_as_the_first() -> None:
    walked = Walked()
    walked.cluster.zone.service_changed(None, service("many", namespace="kube-system", cluster_ips=["None"]))
    pods = slice_of("many", endpoint("10.2.0.1"), endpoint("10.2.0.2"), namespace="kube-system")
    walked.cluster.zone.slice_changed(None, pods)
    first = {str(walked.ask(f"many.kube-system{FIRST}").answer[1][0]) for _ in range(2)}
    assert first == {"10.2.0.1", "10.2.0.2"}


def test_an_external_name_on_the_path_is_followed() -> None:
    walked = Walked()
    walked.cluster.add(
        service("out", namespace="kube-system", type="ExternalName", external_name="Example.com")
    )
    name, alias = f"out.kube-system{FIRST}", "out.kube-system.svc.cluster.local."
    records = [
        f"{name} 5 IN CNAME {alias}",
        f"{alias} 5 IN CNAME example.com.",
        "example.com. 60 IN A 192.0.2.1",
    ]
    assert walked.told(name) == ("NOERROR", records)


def test_the_path_goes_on_with_the_machines_domains_and_the_pods_own() -> None:
    own = PodDNSConfig(searches=["own.test"])
    walked = Walked(pod(dns_config=own), searches=("corp.test",))
    for domain, asked in (
        ("corp.test", ["www.corp.test."]),
        ("own.test", ["www.corp.test.", "www.own.test."]),
        (None, ["www.corp.test.", "www.own.test.", "www."]),
    ):
        walked.asked.clear()
        walked.known = {f"www.{domain}."} if domain else set()
        code, answers = walked.told(f"www{FIRST}")
        assert walked.asked == asked
        assert code == ("NOERROR" if domain else "NXDOMAIN")
        assert len(answers) == (2 if domain else 0)


def test_what_no_server_knows_is_not_there_and_a_server_that_fails_is_passed_over() -> None:
    walked = Walked(searches=("corp.test",))
    walked.failing = {"example.com.corp.test.", "www."}
    assert walked.told(f"example.com{FIRST}")[0] == "NOERROR"
    # The pod walks its path itself, and hears of the failure.
    reply = walked.ask(f"www{FIRST}")
    assert (reply.rcode(), reply.authority[0].name.to_text()) == (dns.rcode.NXDOMAIN, "cluster.local.")


@pytest.mark.parametrize(
    ("name", "type_", "client"),
    [
        (f"example.com{FIRST}", "A", OTHER),
        (f"example.com{FIRST}", "TXT", CLIENT),
        ("example.com.kube-system.svc.cluster.local.", "A", CLIENT),
        ("example.com.svc.cluster.local.", "A", CLIENT),
    ],
    ids=["no pod's address", "another type", "another namespace", "a later name of the path"],
)
def test_for_others_nothing_is_walked(name: str, type_: str, client: str) -> None:
    walked = Walked()
    assert walked.told(name, type_, client) == ("NXDOMAIN", [])
    assert walked.asked == []


def test_a_name_that_exists_is_answered_as_ever() -> None:
    walked = Walked()
    assert walked.told(f"web{FIRST}") == ("NOERROR", [f"web{FIRST} 5 IN A 10.96.0.20"])
    assert walked.told(f"web{FIRST}", "AAAA") == ("NOERROR", [])
    assert walked.told("default.svc.cluster.local.") == ("NOERROR", [])


@pytest.mark.parametrize(
    "other",
    [
        pod(host_network=True),
        pod(dns_policy="Default"),
        pod(dns_policy="None"),
        pod(phase="Succeeded"),
        pod(phase="Failed"),
    ],
    ids=["hostNetwork", "Default", "None", "Succeeded", "Failed"],
)
def test_pods_without_a_search_path_of_the_cluster(other: Pod) -> None:
    walked = Walked(other)
    assert walked.told(f"example.com{FIRST}")[0] == "NXDOMAIN"


def test_an_address_that_two_pods_claim_is_nobodys() -> None:
    """Of one that has gone, it is the other's."""
    first, second = pod(), pod("two")
    second = replace(second, metadata=ObjectMeta(name="two", namespace="kube-system"))
    walked = Walked(first, second)
    names = f"example.com{FIRST}", "example.com.kube-system.svc.cluster.local."
    assert [walked.told(name)[0] for name in names] == ["NXDOMAIN", "NXDOMAIN"]
    walked.paths.pod_changed(first, pod(phase="Succeeded"))
    assert [walked.told(name)[0] for name in names] == ["NXDOMAIN", "NOERROR"]
    walked.paths.pod_changed(second, None)
    assert [walked.told(name)[0] for name in names] == ["NXDOMAIN", "NXDOMAIN"]


def test_names_too_long_are_passed_over() -> None:
    long = ".".join(["a" * 63] * 3)
    walked = Walked(searches=(f"{'b' * 63}.test", "no" * 32))
    names = walked.paths.names(CLIENT, encode(f"{long}{FIRST}"))
    assert [text(one) for one in names] == [
        f"{long}.svc.cluster.local.",
        f"{long}.cluster.local.",
        f"{long}.",
    ]
