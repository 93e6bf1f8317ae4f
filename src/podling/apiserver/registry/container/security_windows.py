"""Faults of the security options of Windows containers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podling.apiserver.registry.field import all_invalid, invalid
from podling.apiserver.registry.pod.containers import containers_with_paths
from podling.model import names
from podling.model.container import WindowsSecurityContextOptions
from podling.model.errors import Cause
from podling.model.pod import PodSpec

MAX_SPEC_KIB = 64
MAX_DOMAIN, MAX_USER = 256, 104

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NETBIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DNS_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_NO_USER = re.compile(r"[. ]+")
_NOT_IN_USER = re.compile(r'["/\\:;|=,+*?<>@\[\]]')


def validate_windows_options(options: WindowsSecurityContextOptions | None, path: str) -> Iterator[Cause]:
    if options is None:
        return
    name, spec = options.gmsa_credential_spec_name, options.gmsa_credential_spec
    if name is not None:
        yield from all_invalid(f"{path}.gmsaCredentialSpecName", name, names.dns1123_subdomain(name))
    if spec == "":
        yield invalid(f"{path}.gmsaCredentialSpec", spec, "gmsaCredentialSpec cannot be an empty string")
    elif spec is not None and len(spec.encode()) > MAX_SPEC_KIB * 1024:
        why = f"gmsaCredentialSpec size must be under {MAX_SPEC_KIB} KiB"
        yield invalid(f"{path}.gmsaCredentialSpec", spec, why)
    user = options.run_as_user_name
    if user is not None:
        yield from all_invalid(f"{path}.runAsUserName", user, _user_faults(user))


def _user_faults(name: str) -> Iterator[str]:
    """Of `user` or `domain\\user`."""
    if not name:
        yield "runAsUserName cannot be an empty string"
    elif _CONTROL.search(name):
        yield "runAsUserName cannot contain control characters"
    elif name.count("\\") > 1:
        yield "runAsUserName cannot contain more than one backslash"
    else:
        domain, backslash, user = name.rpartition("\\")
        if len(domain) >= MAX_DOMAIN:
            yield f"runAsUserName's Domain length must be under {MAX_DOMAIN} characters"
        if backslash and not (_NETBIOS.fullmatch(domain) or _DNS.fullmatch(domain)):
            yield "runAsUserName's Domain doesn't match the NetBios nor the DNS format"
        if not user:
            yield "runAsUserName's User cannot be empty"
        elif len(user) > MAX_USER:
            yield f"runAsUserName's User length must not be longer than {MAX_USER} characters"
        if _NO_USER.fullmatch(user):
            yield "runAsUserName's User cannot contain only periods or spaces"
        if _NOT_IN_USER.search(user):
            yield "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"


def validate_host_process(spec: PodSpec, path: str) -> Iterator[Cause]:
    """All containers of a pod are host processes, or none, and then the pod is in the host's network."""
    context = spec.security_context
    of_pod = context.windows_options.host_process if context and context.windows_options else None
    kinds = set()
    for container, where in containers_with_paths(spec, path):
        inner = container.security_context
        own = inner.windows_options.host_process if inner and inner.windows_options else None
        if own is not None and of_pod is not None and own != of_pod:
            value = str(of_pod).lower()
            why = f"pod hostProcess value must be identical if both are specified, was {value}"
            yield invalid(f"{where}.securityContext.windowsOptions.hostProcess", own, why)
        kinds.add(bool(of_pod if own is None else own))
    if True not in kinds:
        return
    if False in kinds:
        why = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield invalid(path, "", why)
    if not spec.host_network:
        why = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid(f"{path}.hostNetwork", False, why)
