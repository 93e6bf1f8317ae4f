"""What the file of `--admission-control-config-file` tells the plugins that it may configure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from podling.apiserver.admission.pod_security_plugin import NO_OPTIONS, PodSecurityOptions
from podling.model.types.pod import Toleration

Send = Callable[[bytes], Awaitable[bytes]]
"""POST of an ImageReview: the body of the answer. Raises WebhookFailure."""


class EventLimit(msgspec.Struct, frozen=True):
    """`qps` events a second, and `burst` after a while without, for each key that `type` has; `cache_size` of
    them are known at a time."""

    type: str
    qps: int
    burst: int
    cache_size: int


class TolerationOptions(msgspec.Struct, frozen=True):
    """Of namespaces that say nothing of it: what their pods tolerate, and all that these may."""

    default: Sequence[Toleration] = ()
    whitelist: Sequence[Toleration] = ()


class ImagePolicy(msgspec.Struct, frozen=True):
    """Who is asked about images. Answers are kept for `allowed_ttl` and `denied_ttl`, and what fails is tried
    again after `backoff`, in seconds. `fails_open`: nothing is refused because it cannot be asked."""

    send: Send
    allowed_ttl: float
    denied_ttl: float
    backoff: float
    fails_open: bool


class PluginOptions(msgspec.Struct, frozen=True):
    """`node_selectors`: by namespace, what its pods may select, and under `clusterDefaultNodeSelector` what
    they do where the namespace does not say."""

    pod_security: PodSecurityOptions = NO_OPTIONS
    event_limits: Sequence[EventLimit] = ()
    tolerations: TolerationOptions = TolerationOptions()
    node_selectors: Mapping[str, str] = {}
    image_policy: ImagePolicy | None = None


NO_PLUGIN_OPTIONS = PluginOptions()
