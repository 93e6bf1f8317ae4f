"""What a server of Kubernetes says when it is not started, and what it has been found to say before.

To ask is to start one, for two seconds of processor. The same version says the same of the same
configuration, so podling's words are compared with a digest of those, and Kubernetes is asked where there is
none. They are in `agreed/`, one a line; PODLING_RECORD=1 keeps them.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from ports import free_port

KEPT = Path(__file__).with_name("agreed")
AT_ONCE = 2


def differences(
    topic: str,
    programs: Path,
    configurations: Mapping[str, Any],
    ours: Mapping[str, str],
    ask: Callable[[str], str],
) -> dict[str, tuple[str, str]]:
    """What Kubernetes and podling say otherwise, by the names of `configurations`; `ask` starts a server of
    Kubernetes with one, and gives its words in the form of `ours`."""
    version = subprocess.run(
        [programs / "kube-apiserver", "--version"], capture_output=True, check=True
    ).stdout
    file = KEPT / f"{topic}.txt"
    kept = set(file.read_text().split()) if file.exists() else set()
    agreed = {
        name: hashlib.sha256(
            msgspec.json.encode([version, configurations[name], said], order="sorted")
        ).hexdigest()
        for name, said in ours.items()
    }
    unknown = [name for name in ours if agreed[name] not in kept]
    with ThreadPoolExecutor(AT_ONCE) as several:
        theirs = dict(zip(unknown, several.map(ask, unknown), strict=True))
    if os.environ.get("PODLING_RECORD"):
        kept = {agreed[name] for name in ours if theirs.get(name, ours[name]) == ours[name]}
        file.write_text("".join(f"{one}\n" for one in sorted(kept)))
    return {name: (said, ours[name]) for name, said in theirs.items() if said != ours[name]}


def _digest(of: list[Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(of, order="sorted")).hexdigest()


def told_at_start(programs: Path, pki: Path, **flags: object) -> str:
    """Why a server with these flags, whose names have underscores here, was not started, as it is printed.
    `pki` has the pair of service accounts."""
    with tempfile.TemporaryDirectory() as certificates:
        flags = {
            "etcd-servers": "http://127.0.0.1:1",
            "secure-port": free_port(),
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": pki / "service-accounts.crt",
            "service-account-signing-key-file": pki / "service-accounts.key",
            "cert-dir": certificates,
            **{name.replace("_", "-"): value for name, value in flags.items()},
        }
        command = [str(programs / "kube-apiserver"), *(f"--{flag}={value}" for flag, value in flags.items())]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stderr
    return said.partition('"command failed" err=')[2]
