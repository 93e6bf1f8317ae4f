"""Validation of the annotations that mean something to a pod, and of their agreement with the fields that
replaced them.

Keys appear in paths as Kubernetes writes them: some in brackets, some after a dot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from podling.apiserver.rules.container.security import LOCAL, validate_match
from podling.apiserver.rules.field import containers_with_paths, forbidden, invalid, validate_descending
from podling.apiserver.rules.scheduling import validate_tolerations
from podling.model.errors import Cause
from podling.model.rules.status import MIRROR
from podling.model.types.pod import PodSpec, Toleration

TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
POD_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_PROFILES = ("runtime/default", "docker/default", "unconfined")
APP_ARMOR_PROFILES = ("", "runtime/default", "unconfined")

_COST = re.compile("0|[1-9][0-9]{0,9}|-[0-9]{1,10}")
_tolerations = msgspec.json.Decoder(list[Toleration])


def validate_pod_annotations(annotations: Mapping[str, str], spec: PodSpec, path: str) -> Iterator[Cause]:
    if not annotations:
        return
    if MIRROR in annotations and not spec.node_name:
        why = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid(f"{path}[{MIRROR}]", annotations[MIRROR], why)
    if annotations.get(TOLERATIONS):
        try:
            tolerations = _tolerations.decode(annotations[TOLERATIONS])
        except msgspec.DecodeError as error:
            yield invalid(path, TOLERATIONS, str(error))
        else:
            yield from validate_tolerations(tolerations, f"{path}.{TOLERATIONS}")
    cost = annotations.get(DELETION_COST)
    if cost is not None and not (_COST.fullmatch(cost) and -(1 << 31) <= int(cost) < 1 << 31):
        yield invalid(f"{path}[{DELETION_COST}]", cost, "must be a 32bit integer")
    for key, profile in annotations.items():
        if key == POD_SECCOMP or key.startswith(SECCOMP):
            if profile.startswith(LOCAL):
                yield from validate_descending(profile.removeprefix(LOCAL), f"{path}.{key}")
            elif profile not in SECCOMP_PROFILES:
                yield invalid(f"{path}.{key}", profile, "must be a valid seccomp profile")
        elif key.startswith(APP_ARMOR):
            name = key.removeprefix(APP_ARMOR)
            if all(container.name != name for container, _ in containers_with_paths(spec, "")):
                yield invalid(f"{path}[{key}]", name, "container not found")
            if profile not in APP_ARMOR_PROFILES and not profile.startswith(LOCAL):
                yield invalid(f"{path}[{key}]", profile, f'invalid AppArmor profile name: "{profile}"')


def validate_agreement(annotations: Mapping[str, str], spec: PodSpec, path: str) -> Iterator[Cause]:
    """Of a new pod: what is said by annotation and by field must be the same."""
    if not annotations:
        return
    pod = spec.security_context
    if pod is not None and pod.seccomp_profile is not None and POD_SECCOMP in annotations:
        where = f"{path}.securityContext.seccompProfile"
        yield from validate_match(pod.seccomp_profile, annotations[POD_SECCOMP], where, "seccomp")
    windows = spec.os is not None and spec.os.name == "windows"
    for container, where in containers_with_paths(spec, path):
        context, where = container.security_context, f"{where}.securityContext"
        seccomp = context.seccomp_profile if context is not None else None
        annotation = annotations.get(SECCOMP + container.name)
        if seccomp is not None and annotation is not None:
            yield from validate_match(seccomp, annotation, f"{where}.seccompProfile", "seccomp")
        app_armor = context.app_armor_profile if context is not None else None
        app_armor = app_armor or (pod.app_armor_profile if pod is not None else None)
        annotation = annotations.get(APP_ARMOR + container.name)
        if app_armor is not None and annotation is not None and not windows:
            yield from validate_match(app_armor, annotation, f"{where}.appArmorProfile", "apparmor")


def validate_annotation_updates(new: Mapping[str, str], old: Mapping[str, str], path: str) -> Iterator[Cause]:
    """What containers are confined by, and whose pod it is, is settled when it is made."""
    for key in old.keys() | new.keys():
        if key != MIRROR and not key.startswith(APP_ARMOR):
            continue
        what = "mirror pod annotation" if key == MIRROR else "AppArmor annotations"
        if key not in old:
            yield forbidden(f"{path}[{key}]", f"may not add {what}")
        elif new.get(key) != old[key]:
            yield forbidden(f"{path}[{key}]", f"may not remove or update {what}")
