"""A no of the kubelet's server: plain text, and the status Kubernetes' kubelet gives with it."""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web

from podling.cri.interface import RuntimeFault
from podling.kubelet.serving.pod_host import PodHost
from podling.model.pod import Pod


class Refusal(Exception):
    def __init__(self, status: int, text: str, headers: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = list(headers)

    def response(self) -> web.Response:
        return web.Response(status=self.status, text=self.text, headers=self.headers)


def of_runtime(fault: RuntimeFault) -> Refusal:
    return Refusal(404 if fault.code == "NOT_FOUND" else 500, fault.message)


def pod_of(host: PodHost, request: web.Request) -> Pod | None:
    """The pod the path names; with a uid it must be that one and not another of its name."""
    names = request.match_info
    pod = host.pod(names["namespace"], names["pod"])
    if pod is not None and names.get("uid", pod.metadata.uid) != pod.metadata.uid:
        return None
    return pod
