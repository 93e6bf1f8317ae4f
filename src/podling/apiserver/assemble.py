"""Builds the API server from its layers, from storage to pipeline, and starts and ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from podling.apiserver.admission.chain import built_in
from podling.apiserver.apply.apply import Version, Versions
from podling.apiserver.authn.authenticators import Authenticator, CertificateAuthenticator
from podling.apiserver.authn.bootstrap import BootstrapTokens
from podling.apiserver.authn.tokens import ServiceAccountTokens, SigningKey
from podling.apiserver.authz.authorizers import (
    AccessReviewer,
    AuthenticatedAuthorizer,
    Authorizer,
    BasicAuthorizer,
    BootstrapAuthorizer,
    MastersAuthorizer,
    PublicPathsAuthorizer,
)
from podling.apiserver.kinds.kind import Kind, View, kept_as, storage_key
from podling.apiserver.kinds.reviews import Review
from podling.apiserver.observe.audit import AuditLog, Sink
from podling.apiserver.observe.metrics import (
    Metrics,
    RequestMetrics,
    audit_metrics,
    open_and_stored,
    request_metrics,
)
from podling.apiserver.paths.health import health_paths
from podling.apiserver.paths.index import Index, OpenID
from podling.apiserver.pipeline import Observer, Pipeline
from podling.apiserver.request.context import PathHandler
from podling.apiserver.request.response import Handle
from podling.apiserver.routes import Routes, endpoint
from podling.apiserver.show.table import Tables
from podling.apiserver.store.store import Store, Stores
from podling.apiserver.store.view import ViewStore
from podling.apiserver.verbs.scope import Connector, Scope
from podling.model.codec import json
from podling.model.scheme import Resource
from podling.model.time import Clock
from podling.process.waits import OneATurn
from podling.storage.interface import Storage
from podling.watch.cache import WINDOW, ResourceCache

BOOKMARK_SECONDS = 60.0
LOOPBACK = "127.0.0.1:6443"

AUTHENTICATORS: Sequence[Authenticator] = (CertificateAuthenticator(),)
AUTHORIZERS: Sequence[Authorizer] = (
    MastersAuthorizer(),
    PublicPathsAuthorizer(),
    AuthenticatedAuthorizer(),
    BasicAuthorizer(),
    BootstrapAuthorizer(),
)


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
        caches: Sequence[ResourceCache],
        metrics: Metrics,
    ) -> None:
        self.handle: Handle = pipeline.handle
        self.objects = objects
        self.metrics = metrics
        self._state = state
        self._caches = caches
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
        authenticators: Sequence[Authenticator] = AUTHENTICATORS,
        authorizers: Sequence[Authorizer] = AUTHORIZERS,
        audit: Sink | None = None,
        signing_key: SigningKey | None = None,
        address: str = LOOPBACK,
        mount_tokens: bool = False,
        history: int = WINDOW,
    ) -> ApiServer:
        """Connect the layers; nothing is loaded before `start()`.

        `history`: how many changes of each resource a watch can resume over. `mount_tokens`: whether to add
        the `kube-api-access` volume to pods, which the kubelet must be able to set up.
        """
        stores, caches = _stores(storage, kinds, clock, history)
        objects = Stores(stores)
        tokens = ServiceAccountTokens(signing_key or SigningKey.made(), objects.find, clock)
        authenticators = (*authenticators, BootstrapTokens(objects.find, clock))
        reviewer = AccessReviewer(authenticators, authorizers, tokens)
        chain = built_in(objects, clock, reviewer.may, mount_tokens=mount_tokens)
        long_lists = OneATurn()
        scopes = [
            Scope(store, tables, chain, connector, reviewer, long_lists, versions, subresource)
            for store, tables, versions in [
                (store, Tables(store.kind), _versions(store.kind, kinds)) for store in stores
            ]
            for subresource in (None, *store.kind.subresources.values())
        ]
        counts = RequestMetrics([endpoint(scope) for scope in scopes])
        state = ServerState()
        audited = AuditLog(audit, clock) if audit else None
        metrics = Metrics(
            (
                lambda: request_metrics(counts),
                lambda: audit_metrics(audited) if audited else (),
                lambda: open_and_stored(counts, caches.items()),
            )
        )
        health = health_paths(
            storage,
            log=lambda: audit.fault if audit else "",
            loading=state.loading,
            shutdown=state.shutdown,
        )
        handlers: Sequence[PathHandler] = (metrics, OpenID(tokens.key, address), health, *paths)
        pipeline = Pipeline(
            clock=clock,
            authenticators=(*authenticators, tokens),
            authorizers=authorizers,
            paths=(*handlers, Index(handlers)),
            routes=Routes(scopes),
            metrics=counts,
            audit=audited,
            observers=observers,
        )
        return cls(state, pipeline, objects, list(caches.values()), metrics)

    async def start(self) -> None:
        """Load all objects into the watch caches. Requests may come once this has returned."""
        for cache in self._caches:
            await cache.start()
        await self.objects.complete()
        self._state.loaded = True
        self._bookmark()

    def drain(self) -> None:
        """Make `/readyz` fail, since the server is about to end; all requests are still answered."""
        self._state.ending = True

    def close(self) -> None:
        """End all watches. Requests in progress are still answered."""
        self.drain()
        if self._bookmarks is not None:
            self._bookmarks.cancel()
        for cache in self._caches:
            cache.close()

    def _bookmark(self) -> None:
        for cache in self._caches:
            cache.bookmark()
        self._bookmarks = asyncio.get_running_loop().call_later(BOOKMARK_SECONDS, self._bookmark)


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
    stored = {kind.resource for kind in kinds if not isinstance(kind, Review)}
    return stores, {resource: cache for resource, cache in caches.items() if resource in stored}
