"""The plugins that ask webhooks: first those that may change what is written, one after another, and at the
end, all at once, those that only refuse it.

A webhook whose `reinvocationPolicy` asks for it is asked once more if the object was changed after it looked.
While none is configured for what is written, all this is one comparison.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import uuid
from collections.abc import Mapping, Sequence
from importlib import import_module
from time import perf_counter
from typing import Any, ClassVar, Literal

import msgspec

from podling.apiserver.admission.forms import Form
from podling.apiserver.admission.matching import is_asked_about, may_be_about
from podling.apiserver.admission.plugin import ANY, Attributes, Handles, May, Objects, Operation
from podling.apiserver.admission.webhook_client import CallFailed, WebhookClient
from podling.apiserver.admission.webhook_metrics import WebhookMetrics
from podling.apiserver.admission.webhooks import (
    Answered,
    CallError,
    Configuration,
    Hook,
    Refused,
    annotate,
    cannot_change,
    check_dry_run,
    failed,
    hooks_of,
    judge,
    patched,
    review,
)
from podling.apiserver.store.object_meta import REPEATED_AFTER_ADMISSION, drop_repeated_owners
from podling.model.errors import StatusError, not_found
from podling.model.types.admissionregistration import (
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
)
from podling.model.types.core import Namespace
from podling.process.waits import apart, aside

ALL: Handles = {ANY: ("CREATE", "UPDATE", "DELETE", "CONNECT")}
EXPRESSIONS = "podling.apiserver.admission.expressions"
ENTRY_OPERATIONS = ("Apply", "Update")
INVALID_ENTRIES = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated "
    "mutating admission controller; please fix your requests: operation must be `Apply` or `Update`"
)

log = logging.getLogger(__name__)


class Hooks:
    """The webhooks of one kind of configuration, compiled when one of these has changed."""

    def __init__(self, objects: Objects, type_: type[Configuration]) -> None:
        self._objects = objects
        self._type = type_
        self._changes = -1
        self._hooks: tuple[Hook, ...] = ()

    def __call__(self) -> tuple[Hook, ...]:
        changes = self._objects.changes(self._type)
        if changes != self._changes:
            found = list(self._objects.all(self._type))
            self._hooks = hooks_of(found) if found else ()
            self._changes = changes
        return self._hooks


class _Webhooks:
    handles: ClassVar[Handles] = ALL
    sort: ClassVar[Literal["admit", "validating"]]
    type: ClassVar[type[Configuration]]

    def __init__(self, objects: Objects, may: May, client: WebhookClient, metrics: WebhookMetrics) -> None:
        self._objects = objects
        self._may = may
        self._client = client
        self._metrics = metrics
        self._hooks = Hooks(objects, self.type)

    def waits(self, forms: Sequence[Form], subresource: str, operation: Operation) -> bool:
        hooks = self._hooks()
        return bool(hooks) and any(
            may_be_about(rule, form, subresource, operation)
            for hook in hooks
            for rule in hook.match.rules
            for form in forms
        )

    async def wanted(self, attributes: Attributes, hook: Hook, new: Any, old: Any) -> Form | None:
        """The form in which to ask a webhook, None if it is not to be asked. Raises StatusError."""
        form = hook.match.form(attributes, new, old, self._labels)
        if form is None or not hook.conditions:
            return form
        # Only who has conditions pays for the engine of expressions: 0.1 s of importing, and 14 MB.
        if EXPRESSIONS not in sys.modules:
            await apart(import_module, EXPRESSIONS)
        from podling.apiserver.admission.expressions import asked, conditions_met, names_of

        names = names_of(attributes, form, new, old, None, asked(self._may))
        met = await conditions_met(hook.conditions, names)
        if met.errors and not hook.ignores:
            raise attributes.forbidden(met.error)
        return form if met.all and not met.errors else None

    def _labels(self, namespace: str) -> Mapping[str, str]:
        found = self._objects.find(Namespace, "", namespace)
        if found is None:
            raise not_found("namespaces", namespace)
        return found.metadata.labels

    async def ask(
        self, hook: Hook, attributes: Attributes, form: Form, new: Any, old: Any, *, may_patch: bool
    ) -> Answered:
        """Raises CallError, StatusError."""
        began = perf_counter()
        code, rejected, why = 200, True, "no_error"
        try:
            if attributes.dry_run:
                check_dry_run(hook)
            answered = await self._exchange(hook, attributes, form, new, old, may_patch=may_patch)
            rejected = False
        except CallError:
            code, rejected, why = 500, not hook.ignores, "calling_webhook_error"
            raise
        except Refused as refused:
            code = refused.error.code
            self._tell(attributes, refused.told)
            raise refused.error from None
        except StatusError as error:
            code, why = error.code, "apiserver_internal_error"
            raise
        finally:
            seconds = perf_counter() - began
            self._metrics.asked(hook.name, self.sort, attributes.operation, code, rejected, why, seconds)
        self._tell(attributes, answered)
        return answered

    async def _exchange(
        self, hook: Hook, attributes: Attributes, form: Form, new: Any, old: Any, *, may_patch: bool
    ) -> Answered:
        uid = str(uuid.uuid4())
        body = review(hook, attributes, form, new, old, uid)
        try:
            code, media_type, answer = await self._client.post(hook.client, body, hook.seconds)
        except CallFailed as failure:
            raise CallError(hook.name, f"failed to call webhook: {failure}") from failure
        return await aside(
            len(answer), lambda: judge(hook, uid, code, media_type, answer, may_patch=may_patch)
        )

    def _tell(self, attributes: Attributes, told: Answered) -> None:
        attributes.sent.warnings.extend(told.warnings)
        annotate(attributes.sent.annotations, told.annotations)

    def goes_on(self, hook: Hook, attributes: Attributes, error: CallError, key: str) -> None:
        """Raises StatusError unless the write goes on without the webhook."""
        if not hook.ignores:
            raise failed(str(error)) from error
        log.warning("%s, and the write goes on", error)
        self._metrics.opened(hook.name, self.sort)
        annotate(attributes.sent.annotations, {key: hook.name})


class _Memory(msgspec.Struct):
    """What mutating webhooks know of the first time when they are asked again."""

    asked: set[str] = msgspec.field(default_factory=set)
    """Those that may be asked again, if what they have seen changes."""
    again: set[str] = msgspec.field(default_factory=set)
    """Those that must be."""
    output: bytes = b""

    def changed(self) -> None:
        self.again |= self.asked
        self.asked = set()


class MutatingWebhooks(_Webhooks):
    sort = "admit"
    type = MutatingWebhookConfiguration

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError."""
        hooks = self._hooks()
        if not hooks or not is_asked_about(attributes):
            return
        memory = attributes.asked = attributes.asked or _Memory()
        own = attributes.sent.forms[0]
        if attributes.again and memory.output != _output(new, own):
            memory.changed()
        for index, hook in enumerate(hooks):
            form = await self.wanted(attributes, hook, new, old)
            if form is None or (attributes.again and hook.key not in memory.again):
                continue
            where = f"round_{int(attributes.again)}_index_{index}"
            try:
                changed = await self._change(hook, attributes, form, new, old, where)
            except CallError as error:
                changed = False
                self.goes_on(
                    hook, attributes, error, f"failed-open.mutation.webhook.admission.k8s.io/{where}"
                )
            if changed:
                memory.changed()
                attributes.changed = True
            if hook.reinvoked:
                memory.asked.add(hook.key)
        memory.output = _output(new, own)

    async def _change(
        self, hook: Hook, attributes: Attributes, form: Form, new: Any, old: Any, where: str
    ) -> bool:
        """Raises CallError, StatusError."""
        changed = False
        try:
            answered = await self.ask(hook, attributes, form, new, old, may_patch=True)
            if answered.patch is not None:
                if new is None:
                    raise cannot_change(hook)
                changed = await aside(
                    len(attributes.encoded(new, form) or b""),
                    change, attributes, form, new, answered.patch,
                )  # fmt: skip
        finally:
            said = {"configuration": hook.configuration, "webhook": hook.name, "mutated": changed}
            key = f"mutation.webhook.admission.k8s.io/{where}"
            annotate(attributes.sent.annotations, {key: msgspec.json.encode(said).decode()})
        return changed


def change(attributes: Attributes, form: Form, new: Any, operations: Sequence[Any]) -> bool:
    meta = getattr(new, "metadata", None)
    entries = meta.managed_fields if meta is not None else []
    data = patched(attributes.data(new, form), operations)
    try:
        changed = attributes.write(new, form, data)
    except StatusError as error:
        raise unfit(error) if error.code == 400 else error from error
    if meta is not None:
        told = attributes.sent.warnings
        drop_repeated_owners(new.metadata, told, REPEATED_AFTER_ADMISSION)
        if any(entry.operation not in ENTRY_OPERATIONS for entry in new.metadata.managed_fields):
            new.metadata.managed_fields = entries
            told.append(INVALID_ENTRIES)
        attributes.forget()
    return changed


def unfit(error: StatusError) -> StatusError:
    """That a changed object is no object any more, in the words of the decoder alone."""
    words = error.message
    return failed(words[max(words.find("json: "), 0) :])


def _output(new: Any, form: Form) -> bytes:
    return b"" if new is None else form.encoded(new)


class ValidatingWebhooks(_Webhooks):
    sort = "validating"
    type = ValidatingWebhookConfiguration

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises the StatusError of the first webhook, in their order, that refuses."""
        hooks = self._hooks()
        if not hooks or not is_asked_about(attributes):
            return
        wanted = [(hook, form) for hook in hooks if (form := await self.wanted(attributes, hook, new, old))]
        asking = [
            self._refusal(index, hook, attributes, form, new, old)
            for index, (hook, form) in enumerate(wanted)
        ]
        for refusal in await asyncio.gather(*asking):
            if refusal is not None:
                raise refusal

    async def _refusal(
        self, index: int, hook: Hook, attributes: Attributes, form: Form, new: Any, old: Any
    ) -> StatusError | None:
        try:
            await self.ask(hook, attributes, form, new, old, may_patch=False)
        except CallError as error:
            key = f"failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}"
            try:
                self.goes_on(hook, attributes, error, key)
            except StatusError as refusal:
                return refusal
        except StatusError as refusal:
            return refusal
        return None


class Webhooks:
    """Both plugins, with the client and the metrics that they share."""

    def __init__(self, objects: Objects, may: May) -> None:
        self.metrics = WebhookMetrics()
        self._client = WebhookClient(objects)
        self.mutating = MutatingWebhooks(objects, may, self._client, self.metrics)
        self.validating = ValidatingWebhooks(objects, may, self._client, self.metrics)

    async def close(self) -> None:
        await self._client.close()
