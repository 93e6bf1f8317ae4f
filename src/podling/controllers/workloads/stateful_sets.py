"""StatefulSets: pods with a name, claims and a place in an order of their own.

What to do next is planned in `ordinals.py`; this reads and writes. A pod's name is its ordinal's, so it is
never made twice; what was made and deleted is waited for all the same, or the next plan would be an old one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import LAG, Created, Deleted, Key, gone_is_done, own_key
from podling.controllers.workloads.claim_owners import owners_of
from podling.controllers.workloads.claims import Claims, Owned, of_owned
from podling.controllers.workloads.ordinals import (
    Plan,
    Revised,
    Step,
    Template,
    Verb,
    claims_of,
    claims_to_own,
    corrected,
    ordinal,
    ordinals,
    plan,
    status_of,
)
from podling.controllers.workloads.pods import available_in, slowly
from podling.controllers.workloads.revisions import (
    Revisions,
    hash_of,
    in_order,
    revision_of,
    template_of,
    those_of,
)
from podling.model.errors import StatusError
from podling.model.selectors import Selector, from_label_selector
from podling.model.time import Clock
from podling.model.types.apps import ControllerRevision, StatefulSet, StatefulSetStatus
from podling.model.types.meta import ObjectMeta
from podling.model.types.persistent_volume import PersistentVolumeClaim
from podling.model.types.pod import Pod

COMPONENT = "statefulset-controller"
HASH = "controller.kubernetes.io/hash"
"""The label of a revision."""


class StatefulSets:
    name = "statefulset"

    def __init__(
        self,
        client: Client,
        sets: Informer[StatefulSet],
        pods: Informer[Pod],
        owned_pods: Owned[Pod],
        claims: Informer[PersistentVolumeClaim],
        owned_revisions: Owned[ControllerRevision],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._events, self._clock = client, events.by(COMPONENT), clock
        self._sets, self._owned_pods, self._owned_revisions = sets, owned_pods, owned_revisions
        self._claims = claims
        self._claimed_pods, self._claimed_revisions = Claims[Pod](client), Claims[ControllerRevision](client)
        self._revisions = Revisions(client)
        self._created, self._deleted = Created(pods), Deleted(pods)
        sets.subscribe(own_key(self.queue))
        pods.subscribe(of_owned(self.queue, sets, _selector))

    async def reconcile(self, key: Key) -> None:
        if self._created.is_behind(key) or self._deleted.is_behind(key):
            self.queue.add_after(key, LAG)
            return
        owner = self._sets.get(*key)
        if owner is None:
            return
        selector = _selector(owner)

        def fits(meta: ObjectMeta) -> bool:
            return ordinal(owner, meta.name) is not None

        chosen = [
            one for one in self._owned_revisions.candidates(owner) if selector.matches(one.metadata.labels)
        ]
        revisions = in_order(await self._claimed_revisions.settle(owner, selector, chosen))
        found = self._owned_pods.candidates(owner)
        pods = await self._claimed_pods.settle(owner, selector, found, fits)
        await self._sync(key, owner, revisions, pods)

    async def _sync(
        self, key: Key, owner: StatefulSet, revisions: Sequence[ControllerRevision], pods: Sequence[Pod]
    ) -> None:
        revised, collisions = await self._revised(owner, revisions)
        now = self._clock.now()
        planned = plan(owner, revised, pods, self._claims.of_namespace(owner.metadata.namespace), now)
        updating = False
        try:
            updating = await self._carry_out(key, owner, planned)
        finally:
            status = status_of(owner, revised, pods, collisions, now, updating=updating)
            await self._put_status(owner, status)
            live = {revised.current.revision, revised.update.revision, *map(hash_of, pods)}
            await self._forget(owner, revisions, live)
        delays = [available_in(pod, owner.spec.min_ready_seconds, now) for pod in pods]
        if later := [delay for delay in delays if delay]:
            self.queue.add_after(key, min(later))

    async def _revised(
        self, owner: StatefulSet, revisions: Sequence[ControllerRevision]
    ) -> tuple[Revised, int]:
        """The revisions of the rollout, and how often a name was taken. Makes the newest one the highest."""
        newest = revisions[-1] if revisions else None
        number = newest.revision + 1 if newest is not None else 1
        equal = those_of(owner.spec.template, revisions)
        collisions = owner.status.collision_count or 0
        update: ControllerRevision | None
        if equal and equal[-1] is newest:
            update = newest
        elif equal:
            update = await self._revisions.renumber(equal[-1], number)
        else:
            while (
                update := await self._revisions.create(revision_of(owner, HASH, number, collisions))
            ) is None:
                collisions += 1
        updated = Template(update.metadata.name if update else "", owner.spec.template)
        for one in revisions:
            template = template_of(one)
            if one.metadata.name == owner.status.current_revision and template is not None:
                return Revised(Template(one.metadata.name, template), updated), collisions
        return Revised(updated, updated), collisions

    async def _carry_out(self, key: Key, owner: StatefulSet, planned: Plan) -> bool:
        """Whether a pod was deleted to be updated. Raises StatusError at the first step that fails; of those
        that are taken at once some others are taken, too."""
        for stage in planned.stages:
            steps = iter(stage)

            async def act(steps: Iterator[Step] = steps) -> None:
                await self._act(key, owner, next(steps))

            if planned.in_order:
                for _ in stage:
                    await act()
            else:
                await slowly(len(stage), act)
        if planned.updating is None:
            return False
        await self._delete(key, owner, planned.updating)
        return True

    async def _act(self, key: Key, owner: StatefulSet, step: Step) -> None:
        match step.verb:
            case Verb.CREATE:
                await self._create(key, owner, step.pod)
            case Verb.DELETE:
                await self._delete(key, owner, step.pod)
            case Verb.CLAIM:
                await self._make_claims(owner, step.pod)
            case Verb.CORRECT:
                await self._correct(owner, step.pod)
            case Verb.OWN:
                await self._own_claims(owner, step.pod)

    async def _create(self, key: Key, owner: StatefulSet, pod: Pod) -> None:
        try:
            await self._make_claims(owner, pod)
            self._created.add(key, await self._client.create(pod))
            await self._own_claims(owner, pod)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                self._tell(owner, pod, "Create", error)
            raise
        self._tell(owner, pod, "Create")

    async def _delete(self, key: Key, owner: StatefulSet, pod: Pod) -> None:
        meta = pod.metadata
        try:
            await self._client.delete(Pod, meta.name, meta.namespace, uid=meta.uid)
        except StatusError as error:
            if error.code == 404:
                return
            self._tell(owner, pod, "Delete", error)
            raise
        self._deleted.add(key, pod)
        self._tell(owner, pod, "Delete")

    async def _correct(self, owner: StatefulSet, pod: Pod) -> None:
        try:
            wanted = corrected(owner, pod)
            if wanted.spec != pod.spec:
                await self._make_claims(owner, wanted)
            await self._own_claims(owner, pod)
            if wanted != pod:
                await self._client.update(wanted)
        except StatusError as error:
            self._tell(owner, pod, "Update", error)
            raise
        self._tell(owner, pod, "Update")

    async def _make_claims(self, owner: StatefulSet, pod: Pod) -> None:
        """Those of the pod that are not there. Raises StatusError of all that cannot be."""
        faults: list[str] = []
        last: StatusError | None = None
        for claim in claims_of(owner, ordinal(owner, pod.metadata.name) or 0):
            name, namespace = claim.metadata.name, claim.metadata.namespace
            standing = self._claims.get(namespace, name)
            if standing is not None:
                if standing.metadata.deletion_timestamp:
                    faults.append(f"pvc {name} is being deleted")
                continue
            said = f"Claim {name} Pod {pod.metadata.name} in StatefulSet {owner.metadata.name}"
            try:
                await self._client.create(claim)
            except StatusError as error:
                faults.append(f"failed to create PVC {name}: {error.message}")
                last = error
                if error.reason != "AlreadyExists":
                    failed = said.replace(" Pod ", " for Pod ", 1)
                    self._events.warning(
                        owner, "FailedCreate", f"Create {failed} failed error: {error.message}"
                    )
            else:
                self._events.normal(owner, "SuccessfulCreate", f"Create {said} success")
        if faults:
            message = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
            raise StatusError(last.code if last else 409, last.reason if last else "Conflict", message)

    async def _own_claims(self, owner: StatefulSet, pod: Pod) -> None:
        there = self._claims.of_namespace(owner.metadata.namespace)
        is_wanted = ordinal(owner, pod.metadata.name) in ordinals(owner)
        for claim in claims_to_own(owner, pod, there):
            refs = owners_of(owner, pod, claim, is_wanted=is_wanted)
            try:
                with gone_is_done():
                    await self._client.update(
                        replace(claim, metadata=replace(claim.metadata, owner_references=refs))
                    )
            except StatusError as error:
                why = f"could not update claim {claim.metadata.name} for delete policy ownerRefs"
                raise StatusError(error.code, error.reason, f"{why}: {error.message}") from error

    async def _put_status(self, owner: StatefulSet, status: StatefulSetStatus) -> None:
        before = owner.status
        if status == replace(before, collision_count=status.collision_count, conditions=[]):
            return
        with gone_is_done():
            await self._client.update(replace(owner, status=status), subresource="status")

    async def _forget(
        self, owner: StatefulSet, revisions: Sequence[ControllerRevision], live: set[str]
    ) -> None:
        """The oldest beyond `revisionHistoryLimit` that no pod is of."""
        over = [one for one in revisions if one.metadata.name not in live]
        limit = owner.spec.revision_history_limit
        if limit is not None and limit >= 0:
            for one in over[: max(len(over) - limit, 0)]:
                await self._revisions.delete(one)

    def _tell(self, owner: StatefulSet, pod: Pod, verb: str, error: StatusError | None = None) -> None:
        said = f"{verb} Pod {pod.metadata.name} in StatefulSet {owner.metadata.name}"
        if error is None:
            self._events.normal(owner, f"Successful{verb}", f"{said} successful")
        else:
            self._events.warning(owner, f"Failed{verb}", f"{said} failed error: {error.message}")


def _selector(owner: StatefulSet) -> Selector:
    return from_label_selector(owner.spec.selector)
