"""Builds the API server from its layers, from storage to pipeline, and starts and ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from podling.apiserver.admission.chain import built_in
from podling.apiserver.admission.plugin_options import NO_PLUGIN_OPTIONS, PluginOptions
from podling.apiserver.admission.pod_security_plugin import PodSecurity
from podling.apiserver.admission.webhook_plugins import Webhooks
from podling.apiserver.aggregation.passing import Aggregation
from podling.apiserver.apply.apply import Version, Versions
from podling.apiserver.authn.authenticators import Authentication
from podling.apiserver.authn.bootstrap import BootstrapTokens
from podling.apiserver.authn.certificates import CertificateAuthenticator
from podling.apiserver.authn.tokens import ServiceAccountTokens, SigningKey
from podling.apiserver.authz.authorizers import AccessReviewer, Authorizer
from podling.apiserver.authz.modes import Choose, authorizers_of, by_modes
from podling.apiserver.authz.node import SOURCES, NodeGraph
from podling.apiserver.authz.rbac import Name, RbacAuthorizer
from podling.apiserver.connect.kubelets import Kubelets
from podling.apiserver.connect.metrics import Measures
from podling.apiserver.fairness.fairness import DEFAULT_LIMITS, Fairness, InFlightLimits, gate_of
from podling.apiserver.kinds.kind import Kind, View, kept_as, storage_key
from podling.apiserver.observe.audit import AuditLog
from podling.apiserver.observe.components import components
from podling.apiserver.observe.fairness_metrics import fairness_metrics
from podling.apiserver.observe.metrics import (
    Metrics,
    RequestMetrics,
    audit_metrics,
    open_and_stored,
    request_metrics,
)
from podling.apiserver.paths.flow_control import FlowControlPaths
from podling.apiserver.paths.health import Fault, health_paths
from podling.apiserver.paths.index import Index, OpenID
from podling.apiserver.pipeline import Observer, Pipeline
from podling.apiserver.request.context import PathHandler
from podling.apiserver.request.response import Handle
from podling.apiserver.routes import Routes, endpoint
from podling.apiserver.show.table import Tables
from podling.apiserver.store.default_roles import have_default_roles
from podling.apiserver.store.store import Store, Stores
from podling.apiserver.store.view import ViewStore
from podling.apiserver.verbs.scope import Connector, Scope
from podling.model.codec import json
from podling.model.rules.admission_plugins import DEFAULT_PLUGINS
from podling.model.rules.authorization_modes import DEFAULT_MODES
from podling.model.scheme import Resource, resource_of
from podling.model.time import Clock
from podling.model.types.apiregistration import APIService
from podling.model.types.flowcontrol import FlowSchema, PriorityLevelConfiguration
from podling.model.types.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from podling.storage.interface import Storage
from podling.watch.cache import WINDOW, ResourceCache
from podling.watch.forgetting import Forgetting

BOOKMARK_SECONDS = 60.0
LOOPBACK = "127.0.0.1:6443"

DEFAULT = by_modes(*DEFAULT_MODES)
ROLES_AND_BINDINGS = (Role, ClusterRole, RoleBinding, ClusterRoleBinding)

Changed = Callable[[Name, Any, type[Any]], None]
"""Hears of an object, by namespace and name: as it is now, None if it is gone, and its type."""


class ServerState(msgspec.Struct):
    """Whether the server has started and whether it is ending, for its health checks."""

    loaded: bool = False
    ending: bool = False

    def loading(self) -> str:
        return "" if self.loaded else "the objects are not all loaded yet"

    def shutdown(self) -> str:
        return "process is shutting down" if self.ending else ""


class ApiServer:
    """Serves from `start()` to `close()`.

    A listener or a client in the same process needs `handle` only. `objects` is for parts of the server
    itself, whose access is not authorized.
    """

    def __init__(
        self,
        state: ServerState,
        pipeline: Pipeline,
        objects: Stores,
        caches: Mapping[Resource, ResourceCache],
        metrics: Metrics,
        webhooks: Webhooks,
        changed: Mapping[type[Any], Changed],
        aggregation: Aggregation,
        *,
        measures: bool,
    ) -> None:
        self.handle: Handle = pipeline.handle
        self.objects = objects
        self.aggregation = aggregation
        self.metrics = metrics
        self._state = state
        self._caches = caches
        self._webhooks = webhooks
        self._changed = changed
        self._measures = measures
        self._forgetting = Forgetting(caches.values())
        self._bookmarks: asyncio.TimerHandle | None = None

    @classmethod
    def build(
        cls,
        storage: Storage,
        kinds: Sequence[Kind[Any]],
        *,
        clock: Clock,
        connector: Connector,
        paths: Sequence[PathHandler] = (),
        observers: Sequence[Observer] = (),
        authentication: Authentication | None = None,
        choose: Choose = DEFAULT,
        plugins: Collection[str] = DEFAULT_PLUGINS,
        plugin_options: PluginOptions = NO_PLUGIN_OPTIONS,
        families: Sequence[str] = ("IPv4",),
        authorizers: Sequence[Authorizer] = (),
        audit: AuditLog | None = None,
        signing_key: SigningKey | None = None,
        address: str = LOOPBACK,
        mount_tokens: bool = False,
        is_whole: bool = False,
        history: int = WINDOW,
        limits: InFlightLimits = DEFAULT_LIMITS,
        key_providers: Fault | None = None,
        kubelets: Kubelets | None = None,
        proxy_client: tuple[Path, Path] | None = None,
    ) -> ApiServer:
        """Connect the layers; nothing is loaded before `start()`.

        `history`: how many changes of each resource a watch can resume over. `key_providers`: fault of the
        KMS plugins, where there are any. `kubelets`: how they are reached, for the kinds of metrics.k8s.io;
        without them nothing is measured. `proxy_client`: files of the certificate, and its key, by which
        API servers behind this one know it. `is_whole`: whether scheduler
        and controllers run in this process. `mount_tokens`: whether to add
        the `kube-api-access` volume to pods, which the kubelet must be able to set up. `plugins`: those of
        admission that are on, `plugin_options`: what a file tells some of them. `choose`:
        the authorizers; `authorizers`, if any, take their place.
        """
        stores, caches = _stores(storage, kinds, clock, history)
        objects = Stores(stores)
        tokens = ServiceAccountTokens(signing_key or SigningKey.made(), objects.find, clock)
        authentication = authentication or Authentication((CertificateAuthenticator(clock),))
        authentication = replace(
            authentication,
            authenticators=(*authentication.authenticators, tokens, BootstrapTokens(objects.find, clock)),
            audiences=tokens.audiences,
        )
        roles, nodes = RbacAuthorizer(), NodeGraph()
        authorizers = authorizers or authorizers_of(choose, roles, nodes)
        aggregation = Aggregation(objects, proxy_client)
        changed: dict[type[Any], Changed] = {
            APIService: aggregation.changed,
            **dict.fromkeys(ROLES_AND_BINDINGS, roles.changed),
            **dict.fromkeys(SOURCES, nodes.changed),
        }
        reviewer = AccessReviewer(authentication, authorizers, tokens)
        webhooks = Webhooks(objects, reviewer.may)
        standards = PodSecurity(objects, plugin_options.pod_security)
        chain = built_in(
            objects,
            clock,
            reviewer.may,
            roles,
            webhooks,
            standards,
            plugin_options,
            taken_ports=objects.taken_node_ports,
            mount_tokens=mount_tokens,
            plugins=plugins,
            families=families,
        )
        parts = components(storage, is_whole=is_whole)
        measures = Measures(objects, kubelets, clock) if kubelets is not None else None
        alike: dict[Resource, list[Kind[Any]]] = {}
        for kind in kinds:
            alike.setdefault(kept_as(kind), []).append(kind)
        scopes = [
            Scope(
                store,
                tables,
                chain,
                connector,
                reviewer,
                parts,
                measures,
                versions,
                subresource,
                alike[kept_as(store.kind)],
            )
            for store, tables, versions in [
                (store, Tables(store.kind), _versions(store.kind, alike[kept_as(store.kind)]))
                for store in stores
            ]
            for subresource in (None, *store.kind.subresources.values())
        ]
        counts = RequestMetrics([endpoint(scope) for scope in scopes])
        sizes = {(one.group, one.plural): cache for one, cache in caches.items()}
        gate = (
            gate_of(limits, objects, sizes)
            if ("flowcontrol.apiserver.k8s.io", "flowschemas") in sizes
            else None
        )
        if isinstance(gate, Fairness):
            changed |= dict.fromkeys((FlowSchema, PriorityLevelConfiguration), gate.changed)
        state = ServerState()
        metrics = Metrics(
            (
                lambda: request_metrics(counts),
                lambda: audit_metrics(audit) if audit else (),
                lambda: open_and_stored(counts, caches.items()),
                webhooks.metrics.metrics,
                lambda: fairness_metrics(gate) if isinstance(gate, Fairness) else (),
                standards.metrics,
            )
        )
        health = health_paths(
            storage,
            log=lambda: audit.fault if audit else "",
            loading=state.loading,
            shutdown=state.shutdown,
            key_providers=key_providers,
        )
        flows = (FlowControlPaths(gate),) if isinstance(gate, Fairness) else ()
        handlers: Sequence[PathHandler] = (metrics, OpenID(tokens.key, address), health, *paths, *flows)
        pipeline = Pipeline(
            clock=clock,
            authentication=authentication,
            authorizers=authorizers,
            paths=(*handlers, Index(handlers)),
            routes=Routes(scopes, storage.current if storage.is_shared else None),
            aggregation=aggregation,
            metrics=counts,
            gate=gate,
            audit=audit,
            observers=observers,
        )
        has = measures is not None
        return cls(state, pipeline, objects, caches, metrics, webhooks, changed, aggregation, measures=has)

    async def start(self) -> None:
        """Load all objects into the watch caches. Requests may come once this has returned."""
        # All at a time, so that a storage elsewhere is asked once for what they have in common.
        await asyncio.gather(*(cache.start() for cache in self._caches.values()))
        for type_, changed in self._changed.items():
            resource = resource_of(type_)
            if (kept := self._caches.get(resource)) is not None:
                kept.listen(partial(_tell, changed, kept, storage_key(resource), type_))
        await self.objects.complete()
        self._state.loaded = True
        self._bookmark()

    async def have_default_roles(self) -> None:
        """Make the roles and bindings that every cluster has. Raises StatusError."""
        await have_default_roles(self.objects, measures=self._measures)

    def drain(self) -> None:
        """Make `/readyz` fail, since the server is about to end; all requests are still answered."""
        self._state.ending = True

    def close(self) -> None:
        """End all watches. Requests in progress are still answered."""
        self.drain()
        if self._bookmarks is not None:
            self._bookmarks.cancel()
        for cache in self._caches.values():
            cache.close()

    async def ended(self) -> None:
        """Close the connections to webhooks, once no request is in progress."""
        await self._webhooks.close()

    def _bookmark(self) -> None:
        for cache in self._caches.values():
            cache.bookmark()
        self._forgetting.tick(max(cache.revision for cache in self._caches.values()))
        self._bookmarks = asyncio.get_running_loop().call_later(BOOKMARK_SECONDS, self._bookmark)


def _tell(changed: Changed, cache: ResourceCache, prefix: str, type_: type[Any], key: str) -> None:
    namespace, _, name = key.removeprefix(prefix).rpartition("/")
    entry = cache.get(key)
    changed((namespace, name), entry.object if entry else None, type_)


def _versions(kind: Kind[Any], kinds: Sequence[Kind[Any]]) -> Versions:
    """The other versions of a kind within its group: as in Kubernetes, managers of fields are known in
    these."""
    if isinstance(kind, View):
        stored = kind.stored.resource
        other = {stored.api_version: Version(stored.type, kind.to_stored, kind.from_stored)}
        return other if stored.group == kind.resource.group else {}
    return {
        view.resource.api_version: Version(view.resource.type, view.from_stored, view.to_stored)
        for view in kinds
        if isinstance(view, View)
        if view.stored.resource is kind.resource and view.resource.group == kind.resource.group
    }


def _stores(
    storage: Storage, kinds: Sequence[Kind[Any]], clock: Clock, history: int
) -> tuple[list[Store[Any]], dict[Resource, ResourceCache]]:
    """A store for each kind, and the caches of those that are stored."""
    caches = {
        kind.resource: ResourceCache(
            storage,
            storage_key(kind.resource),
            partial(json.decode, type_=kind.resource.type),
            kind=kind.resource.kind,
            api_version=kind.resource.api_version,
            window=history,
        )
        for kind in kinds
        if kind.resource is kept_as(kind)
    }
    stores: list[Store[Any]] = []
    for kind in kinds:
        cache = caches[kept_as(kind)]
        if isinstance(kind, View):
            stores.append(ViewStore(kind, Store(kind.stored, storage, cache, clock, named=kind.resource)))
        else:
            stores.append(Store(kind, storage, cache, clock))
    stored = {kind.resource for kind in kinds if kind.resource.stored}
    return stores, {resource: cache for resource, cache in caches.items() if resource in stored}
