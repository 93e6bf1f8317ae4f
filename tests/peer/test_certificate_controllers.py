"""R-SYS-8: requests for certificates are approved and signed as by the kube-controller-manager.

Two API servers of podling are sent the same requests; beside one run podling's controllers, beside the other
those of the kube-controller-manager.
"""

from __future__ import annotations

import base64
import ipaddress
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding

from peer import control_plane
from peer.sequence import MERGE_PATCH
from peer.server import Asking, running
from ports import free_port

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CONTROLLERS = ("approving", "signing")
KUBELET, SERVING, CLIENT = (
    f"kubernetes.io/{name}"
    for name in ("kube-apiserver-client-kubelet", "kubelet-serving", "kube-apiserver-client")
)
NODE = {"Impersonate-User": "system:node:n", "Impersonate-Group": "system:nodes"}
BOOTSTRAP = {"Impersonate-User": "system:bootstrap:abcdef", "Impersonate-Group": "system:bootstrappers"}
AS_CLIENT = ("digital signature", "client auth")
AS_SERVER = ("digital signature", "server auth")
KEY = ec.generate_private_key(ec.SECP256R1())
RSA_KEY = rsa.generate_private_key(65537, 2048)
LOOKS = 300
"""At most, a tenth of a second apart."""
Names = Sequence[Sequence[tuple[x509.ObjectIdentifier, str]]]
OF = x509.NameOID


class Asked(msgspec.Struct, frozen=True):
    """Who asks which signer for what. `subject` has its relative names, each with its attributes."""

    signer: str
    subject: Names
    usages: Sequence[str] = AS_CLIENT
    sans: Sequence[x509.GeneralName] = ()
    user: Mapping[str, str] = {}
    seconds: int | None = None
    key: CertificateIssuerPrivateKeyTypes = KEY
    extensions: Sequence[x509.ExtensionType] = ()
    decided: str = "Approved"
    """The condition that an administrator adds; empty for none."""

    def body(self, name: str) -> dict[str, Any]:
        relative = [
            x509.RelativeDistinguishedName(x509.NameAttribute(*one) for one in part) for part in self.subject
        ]
        builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(relative))
        if self.sans:
            builder = builder.add_extension(x509.SubjectAlternativeName(self.sans), critical=False)
        for extension in self.extensions:
            builder = builder.add_extension(extension, critical=True)
        pem = builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM)
        spec: dict[str, Any] = {
            "request": base64.b64encode(pem).decode(),
            "signerName": self.signer,
            "usages": list(self.usages),
        }
        if self.seconds is not None:
            spec["expirationSeconds"] = self.seconds
        return {"metadata": {"name": name}, "spec": spec}


def named(common_name: str, *organizations: str) -> Names:
    return [*([(OF.ORGANIZATION_NAME, one)] for one in organizations), [(OF.COMMON_NAME, common_name)]]


def node(name: str = "system:node:n", *organizations: str) -> Names:
    return named(name, *(organizations or ("system:nodes",)))


DNS, IP = x509.DNSName("n"), x509.IPAddress(ipaddress.ip_address("192.0.2.1"))
IPV6 = x509.IPAddress(ipaddress.ip_address("2001:db8::1"))
EMAIL, URI = x509.RFC822Name("a@example.com"), x509.UniformResourceIdentifier("spiffe://a/b")
ALL = (
    "signing", "digital signature", "content commitment", "key encipherment", "key agreement",
    "data encipherment", "cert sign", "crl sign", "encipher only", "decipher only", "any", "server auth",
    "client auth", "code signing", "email protection", "s/mime", "ipsec end system", "ipsec tunnel",
    "ipsec user", "timestamping", "ocsp signing", "microsoft sgc", "netscape sgc",
)  # fmt: skip
ASKED = {
    # What the approver does by itself.
    "self": Asked(KUBELET, node(), user=NODE, decided=""),
    "self-rsa": Asked(KUBELET, node(), (*AS_CLIENT, "key encipherment"), user=NODE, key=RSA_KEY, decided=""),
    "bootstrap": Asked(KUBELET, node(), user=BOOTSTRAP, decided=""),
    "other-node": Asked(KUBELET, node("system:node:other"), user=NODE, decided=""),
    "no-node": Asked(KUBELET, node("n"), user=NODE, decided=""),
    "no-name": Asked(KUBELET, [[(OF.ORGANIZATION_NAME, "system:nodes")]], user=NODE, decided=""),
    "no-group": Asked(KUBELET, named("system:node:n"), user=NODE, decided=""),
    "two-groups": Asked(KUBELET, node("system:node:n", "system:nodes", "b"), user=NODE, decided=""),
    "twice": Asked(KUBELET, node("system:node:n", "system:nodes", "system:nodes"), user=NODE, decided=""),
    "masters": Asked(KUBELET, node("system:node:n", "system:masters"), user=NODE, decided=""),
    "dns": Asked(KUBELET, node(), sans=[DNS], user=NODE, decided=""),
    "server": Asked(KUBELET, node(), AS_SERVER, user=NODE, decided=""),
    "more": Asked(KUBELET, node(), (*AS_CLIENT, "server auth"), user=NODE, decided=""),
    "less": Asked(KUBELET, node(), ("client auth",), user=NODE, decided=""),
    "serving-asked": Asked(SERVING, node(), AS_SERVER, [DNS], NODE, decided=""),
    "client-asked": Asked(CLIENT, named("ann"), decided=""),
    # What an administrator approved.
    "serving": Asked(SERVING, node(), AS_SERVER, [DNS, IP], NODE),
    "serving-rsa": Asked(
        SERVING, node(), (*AS_SERVER, "key encipherment"), [IP, DNS, IPV6], NODE, key=RSA_KEY
    ),
    "serving-nowhere": Asked(SERVING, node(), AS_SERVER, user=NODE),
    "serving-email": Asked(SERVING, node(), AS_SERVER, [DNS, EMAIL]),
    "serving-uri": Asked(SERVING, node(), AS_SERVER, [DNS, URI]),
    "serving-client": Asked(SERVING, node(), AS_CLIENT, [DNS]),
    "serving-name": Asked(SERVING, node("n"), AS_SERVER, [DNS]),
    "serving-group": Asked(SERVING, named("system:node:n", "b"), AS_SERVER, [DNS]),
    "serving-all-wrong": Asked(SERVING, named("n"), AS_CLIENT, [EMAIL, URI]),
    "kubelet-dns": Asked(KUBELET, node(), sans=[DNS]),
    "kubelet-email": Asked(KUBELET, node(), sans=[EMAIL]),
    "kubelet-ip": Asked(KUBELET, node(), sans=[IP]),
    "kubelet-uri": Asked(KUBELET, node(), sans=[URI]),
    "kubelet-uri-dns": Asked(KUBELET, node(), sans=[URI, IP, EMAIL, DNS]),
    "kubelet-name": Asked(KUBELET, node("n")),
    "kubelet-usages": Asked(KUBELET, node(), ALL),
    "kubelet-group": Asked(KUBELET, node("n", "system:masters"), AS_SERVER),
    "kubelet-order": Asked(
        KUBELET, [[(OF.COMMON_NAME, "system:node:n")], [(OF.ORGANIZATION_NAME, "system:nodes")]]
    ),
    "kubelet-one-part": Asked(
        KUBELET, [[(OF.COMMON_NAME, "system:node:n"), (OF.ORGANIZATION_NAME, "system:nodes")]]
    ),
    "kubelet-two-names": Asked(
        KUBELET, [*node("system:node:n"), [(OF.COMMON_NAME, "system:node:m")], [(OF.COMMON_NAME, "m")]]
    ),
    "client": Asked(CLIENT, named("ann", "b", "a")),
    "client-only": Asked(CLIENT, named("ann"), ("client auth",)),
    "client-rsa": Asked(CLIENT, named("ann"), (*AS_CLIENT, "key encipherment"), key=RSA_KEY),
    "client-server": Asked(CLIENT, named("ann"), ("server auth", "any")),
    "client-signs": Asked(CLIENT, named("ann"), ("client auth", "cert sign")),
    "client-no-auth": Asked(CLIENT, named("ann"), ("digital signature",)),
    "client-nobody": Asked(CLIENT, []),
    "client-nobody-there": Asked(CLIENT, [], sans=[DNS]),
    "client-sans": Asked(
        CLIENT, named("ann"), sans=[URI, IP, EMAIL, DNS, IPV6, x509.DNSName("b.example.com")]
    ),
    "client-other-sans": Asked(
        CLIENT, named("ann"), sans=[x509.RegisteredID(x509.ObjectIdentifier("1.2.3")), DNS]
    ),
    "client-ca": Asked(CLIENT, named("ann"), extensions=[x509.BasicConstraints(ca=True, path_length=None)]),
    "client-names": Asked(
        CLIENT,
        [
            [(OF.SERIAL_NUMBER, "7"), (OF.COMMON_NAME, "ann")],
            [(OF.DOMAIN_COMPONENT, "example")],
            [(OF.EMAIL_ADDRESS, "a@example.com")],
            [(OF.GIVEN_NAME, "Ann")],
            [(OF.ORGANIZATIONAL_UNIT_NAME, "u2")],
            [(OF.ORGANIZATIONAL_UNIT_NAME, "u1")],
            [(OF.COUNTRY_NAME, "DE")],
            [(OF.STATE_OR_PROVINCE_NAME, "p")],
            [(OF.LOCALITY_NAME, "l")],
            [(OF.STREET_ADDRESS, "s")],
            [(OF.POSTAL_CODE, "1")],
            [(OF.ORGANIZATION_NAME, "Größe")],
        ],
    ),
    "seconds-600": Asked(CLIENT, named("ann"), seconds=600),
    "seconds-short": Asked(CLIENT, named("ann"), seconds=8 * 3600 - 1),
    "seconds-8h": Asked(CLIENT, named("ann"), seconds=8 * 3600),
    "seconds-long": Asked(CLIENT, named("ann"), seconds=8 * 3600 + 1),
    "seconds-year": Asked(CLIENT, named("ann"), seconds=8760 * 3600 - 1),
    "seconds-more": Asked(CLIENT, named("ann"), seconds=8760 * 3600 + 1),
    "seconds-most": Asked(KUBELET, node(), seconds=2**31 - 1),
    "denied": Asked(CLIENT, named("ann"), decided="Denied"),
    "denied-self": Asked(KUBELET, node(), user=NODE, decided="Denied"),
    "failed": Asked(CLIENT, named("ann"), decided="Failed"),
    "other-signer": Asked("example.com/signer", named("ann")),
    "unknown-signer": Asked("kubernetes.io/other", named("ann")),
    "last": Asked(KUBELET, node(), user=NODE, decided=""),
}
"""By name. The last is served when the others have been looked at."""


class Outcome(msgspec.Struct, frozen=True):
    """The conditions (type, reason, message), and what the certificate says: its subject, how many seconds it
    is good for, and each extension with whether it is critical."""

    conditions: Sequence[tuple[str, str, str]]
    subject: Sequence[Sequence[str]] = ()
    seconds: float = 0
    extensions: Sequence[tuple[bool, str]] = ()


Outcomes = Mapping[str, Outcome]


def outcome(request: dict[str, Any]) -> Outcome:
    status = request["status"]
    conditions = [(one["type"], one["reason"], one["message"]) for one in status.get("conditions", ())]
    if "certificate" not in status:
        return Outcome(conditions)
    found = x509.load_pem_x509_certificate(base64.b64decode(status["certificate"]))
    return Outcome(
        conditions,
        [sorted(one.rfc4514_string() for one in relative) for relative in found.subject.rdns],
        (found.not_valid_after_utc - found.not_valid_before_utc).total_seconds(),
        [(one.critical, _shown(one.value)) for one in found.extensions],
    )


def _shown(extension: x509.ExtensionType) -> str:
    """Authorities differ."""
    if isinstance(extension, x509.AuthorityKeyIdentifier):
        return "of the authority"
    return repr(extension)


def send(asking: Asking) -> None:
    for name, asked in ASKED.items():
        made = asking.ask("POST", REQUESTS, asked.body(name), **asked.user)
        assert made.code == 201, made.body
        if asked.decided:
            part = "status" if asked.decided == "Failed" else "approval"
            condition = {"type": asked.decided, "status": "True", "reason": "R", "message": "m"}
            body = {"status": {"conditions": [condition]}}
            done = asking.ask("PATCH", f"{REQUESTS}/{name}/{part}", body, Content_Type=MERGE_PATCH)
            assert done.code == 200, done.body


def outcomes(asking: Asking) -> Outcomes:
    """As they are now; empty until the last request was served."""
    listed = {one["metadata"]["name"]: one for one in asking.ask("GET", REQUESTS).body["items"]}
    if "certificate" not in listed["last"]["status"]:
        return {}
    return {name: outcome(listed[name]) for name in ASKED}


@pytest.fixture(scope="module")
def both(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Outcomes, Outcomes]]:
    """What became of the requests by Kubernetes' controllers and by podling's, as soon as it is the same, or
    when it had time to become it."""
    there, here = (tmp_path_factory.mktemp(name) for name in ("kubernetes", "podling"))
    flags = {
        "controllers": ",".join(f"certificatesigningrequest-{name}-controller" for name in CONTROLLERS),
        "leader-elect": "false",
        "bind-address": "127.0.0.1",
        "secure-port": free_port(),
        "cert-dir": there,
    }
    commands: dict[Path, list[Any]] = {
        there: [kubernetes_programs / "kube-controller-manager", *(f"--{k}={v}" for k, v in flags.items())],
        here: [sys.executable, "-m", "podling", "controllers"],
    }
    with ExitStack() as stack:
        asking = []
        for directory, command in commands.items():
            # It refuses a kubelet's request for another node, which the controllers shall see.
            server = stack.enter_context(
                control_plane.podling(directory, "--disable-admission-plugins", "NodeRestriction")
            )
            common = {
                "kubeconfig": server.kubeconfig,
                "cluster-signing-cert-file": server.ca,
                "cluster-signing-key-file": server.ca.with_suffix(".key"),
            }
            asking.append(stack.enter_context(server.asking()))
            send(asking[-1])
            whole = [str(one) for one in [*command, *(f"--{k}={v}" for k, v in common.items())]]
            controllers = stack.enter_context(running(whole, directory / "controllers.log"))
        for _ in range(LOOKS):
            theirs, ours = map(outcomes, asking)
            if theirs and theirs == ours:
                break
            with suppress(subprocess.TimeoutExpired):
                controllers.wait(0.1)
        yield theirs, ours


@pytest.mark.parametrize("name", ASKED)
def test_what_becomes_of_a_request(name: str, both: tuple[Outcomes, Outcomes]) -> None:
    theirs, ours = both
    assert ours[name] == theirs[name]
