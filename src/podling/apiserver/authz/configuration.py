"""AuthorizationConfiguration (apiserver.config.k8s.io): the authorizers, in the order in which they are
asked, and how each webhook is. `rules/authorization.py` checks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from podling.model.codec.fields import Object, Part

GROUP = "apiserver.config.k8s.io"
VERSIONS = tuple(f"{GROUP}/{version}" for version in ("v1", "v1beta1", "v1alpha1"))
WEBHOOK = "Webhook"
KUBECONFIG_FILE, IN_CLUSTER = "KubeConfigFile", "InClusterConfig"
DENY, NO_OPINION = "Deny", "NoOpinion"
ACCESS = "request"
"""What conditions may name."""


class ConnectionInfo(Part):
    type: str = ""
    kube_config_file: str | None = None


class MatchCondition(Part):
    expression: str = ""


class WebhookConfiguration(Part):
    authorized_TTL: str = ""
    cache_authorized_requests: bool = True
    unauthorized_TTL: str = ""
    cache_unauthorized_requests: bool = True
    timeout: str = ""
    subject_access_review_version: str = ""
    match_condition_subject_access_review_version: str = ""
    failure_policy: str = ""
    connection_info: ConnectionInfo = msgspec.field(default_factory=ConnectionInfo)
    match_conditions: list[MatchCondition] = []


class AuthorizerConfiguration(Part):
    type: str = ""
    name: str = ""
    webhook: WebhookConfiguration | None = None


class AuthorizationConfiguration(Object):
    KIND: ClassVar[str] = "AuthorizationConfiguration"
    API_VERSION: ClassVar[str] = VERSIONS[0]

    authorizers: list[AuthorizerConfiguration] = []


class WebhookSettings(msgspec.Struct, frozen=True):
    """A webhook as it was configured by file or flags. `kubeconfig`: where it is; `version`: of the
    SubjectAccessReviews that it is sent; `seconds`: it may take, for all attempts together; `denies`: what
    fails is refused, and not left to the next authorizer. Answers that allow are kept for `allowed_ttl`
    seconds, others for `other_ttl`."""

    kubeconfig: str
    name: str = "webhook"
    version: str = "v1beta1"
    seconds: float = 30.0
    allowed_ttl: float = 300.0
    other_ttl: float = 30.0
    denies: bool = False
    conditions: Sequence[str] = ()


class Step(msgspec.Struct, frozen=True):
    """One authorizer: a webhook, or one of the server's own by its type."""

    type: str
    name: str
    webhook: WebhookSettings | None = None
