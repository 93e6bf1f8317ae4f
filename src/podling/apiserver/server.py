"""The API server: its parts put together, from storage to pipeline, and their beginning and end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from podling.apiserver.admission.built_in import built_in
from podling.apiserver.admission.plugin import Chain
from podling.apiserver.authn.authenticator import Authenticator
from podling.apiserver.authn.x509 import CertificateAuthenticator
from podling.apiserver.authz.authorizer import Authorizer
from podling.apiserver.authz.interim import (
    AuthenticatedAuthorizer,
    MastersAuthorizer,
    PublicPathsAuthorizer,
)
from podling.apiserver.judges import Judges
from podling.apiserver.metrics import RequestCounts
from podling.apiserver.pipeline import Observer, PathHandler, Pipeline
from podling.apiserver.registry.kind import Kind, View, storage_key
from podling.apiserver.registry.review import Review
from podling.apiserver.registry.store import Store, kept_as
from podling.apiserver.registry.stores import Stores
from podling.apiserver.registry.view_storage import ViewStorage
from podling.apiserver.response import Handle
from podling.apiserver.routes import Routes
from podling.apiserver.table import Tables
from podling.apiserver.verbs.scope import Connector, Scope
from podling.model import json
from podling.model.time import Clock
from podling.storage.interface import Storage
from podling.watch.cache import ResourceCache

BOOKMARK_SECONDS = 60.0

AUTHENTICATORS: Sequence[Authenticator] = (CertificateAuthenticator(),)
AUTHORIZERS: Sequence[Authorizer] = (
    MastersAuthorizer(),
    PublicPathsAuthorizer(),
    AuthenticatedAuthorizer(),
)


class ApiServer:
    """Serves from `start()` to `close()`. `handle` is all that a listener or an in-process client needs."""

    def __init__(self, pipeline: Pipeline, caches: Sequence[ResourceCache], counts: RequestCounts) -> None:
        self.handle: Handle = pipeline.handle
        self._caches = caches
        self._bookmarks: asyncio.TimerHandle | None = None
        self.counts = counts

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
    ) -> ApiServer:
        stores = [_store(storage, kind, clock) for kind in kinds]
        counts = RequestCounts()
        chain = built_in(Stores(stores), clock)
        pipeline = Pipeline(
            clock=clock,
            authenticators=authenticators,
            authorizers=authorizers,
            paths=paths,
            routes=Routes(list(_scopes(stores, chain, connector, Judges(authenticators, authorizers)))),
            observers=(counts, *observers),
        )
        caches = [store.cache for store in stores if not isinstance(store.kind, Review)]
        return cls(pipeline, caches, counts)

    async def start(self) -> None:
        """Load all objects; requests may come once this has returned."""
        for cache in self._caches:
            await cache.start()
        self._bookmark()

    def close(self) -> None:
        """End all watches. Requests in progress are answered."""
        if self._bookmarks is not None:
            self._bookmarks.cancel()
        for cache in self._caches:
            cache.close()

    def _bookmark(self) -> None:
        for cache in self._caches:
            cache.bookmark()
        self._bookmarks = asyncio.get_running_loop().call_later(BOOKMARK_SECONDS, self._bookmark)


def _store(storage: Storage, kind: Kind[Any], clock: Clock) -> Store[Any]:
    resource = kind.resource
    if isinstance(kind, View):
        storage = ViewStorage(storage, kind)
    cache = ResourceCache(
        storage,
        storage_key(kept_as(kind)),
        json.decoder_of(resource.type).decode,
        kind=resource.kind,
        api_version=resource.api_version,
    )
    return Store(kind, storage, cache, clock)


def _scopes(
    stores: Sequence[Store[Any]], chain: Chain, connector: Connector, judges: Judges
) -> Iterator[Scope]:
    for store in stores:
        tables = Tables(store.kind)
        for subresource in (None, *store.kind.subresources.values()):
            yield Scope(store, tables, chain, connector, judges, subresource)
