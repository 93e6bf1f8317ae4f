"""The API server alone, with its storage and the controllers that belong to it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
from msgspec.structs import replace

from podling.apiserver.store.expiry import expire_events
from podling.assemble import process
from podling.assemble.control_plane import ServerSettings, believed, control_plane, server_settings
from podling.assemble.controllers import run_own
from podling.assemble.kubeconfigs import write_admin, write_parts
from podling.assemble.process import Report
from podling.assemble.settle import (
    LOOPBACK,
    AdmissionOptions,
    AuditOptions,
    AuthenticationOptions,
    AuthorizationOptions,
    EncryptionOptions,
    EtcdOptions,
    InFlightOptions,
    ServingOptions,
    check_port,
    choose_range,
)
from podling.assemble.shared import keep, shared
from podling.machine.instance import DEFAULT_PORT, Instance
from podling.machine.pki import Authority, renew_forever
from podling.machine.start import hold, machine_address, writing
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.time import SystemClock
from podling.storage.compactor import compact_forever


class ServerOptions(msgspec.Struct, frozen=True):
    """The options of `podling apiserver`. Pods and nodes reach the server at `address`, this machine's own
    when empty; `service_range` is as in `UpOptions`, `kubelet_ca` as in `ServerSettings`."""

    instance: Instance
    port: int = DEFAULT_PORT
    address: str = ""
    service_range: str = ""
    kubelet_ca: Path | None = None
    gates: Gates = DEFAULT_GATES
    authorization: AuthorizationOptions = AuthorizationOptions()
    audit: AuditOptions = AuditOptions()
    authentication: AuthenticationOptions = AuthenticationOptions()
    in_flight: InFlightOptions = InFlightOptions()
    admission: AdmissionOptions = AdmissionOptions()
    encryption: EncryptionOptions = EncryptionOptions()
    showing: ServingOptions = ServingOptions()
    etcd: EtcdOptions = EtcdOptions()
    shutdown_delay: float = 0.0
    """Seconds that it goes on to answer when it was told to stop and is not ready any more."""
    sends_retry_after: bool = False
    """See `ServerSettings`."""


def run(options: ServerOptions, report: Report) -> None:
    """Serve until told to stop. Raises StartError."""

    async def main(told_to_stop: asyncio.Event) -> None:
        clock, instance, port = SystemClock(), options.instance, options.port
        with hold(instance):
            with writing(instance.data_dir):
                instance.have_data_dir()
                check_port(port)
                address = options.address or machine_address()
                cidr = choose_range(instance, port, options.service_range)

                def certified() -> tuple[Authority, ServerSettings]:
                    authority = Authority(instance.pki_dir, clock.now())
                    settings = server_settings(
                        instance, port, address, cidr, authority, options.gates, options.audit
                    )
                    write_admin(instance, port, authority)
                    write_parts(instance, port, authority)
                    return authority, settings

                authority, settings = certified()
                settings = replace(
                    settings,
                    kubelet_ca=options.kubelet_ca,
                    authentication=options.authentication,
                    authorization=options.authorization,
                    in_flight=options.in_flight,
                    admission=options.admission,
                    encryption=options.encryption,
                    showing=options.showing,
                    etcd=options.etcd,
                    sends_retry_after=options.sends_retry_after,
                )
            async with control_plane(settings, clock) as plane, asyncio.TaskGroup() as tasks:
                if plane.leases is not None:
                    keep(instance, shared(options.etcd, port, cidr, address=address))
                else:
                    instance.shared_file.unlink(missing_ok=True)
                own = plane.own_client()
                acting = [
                    tasks.create_task(compact_forever(plane.storage)),
                    tasks.create_task(renew_forever(authority.due, lambda: certified()[0].due, clock)),
                    tasks.create_task(expire_events(plane.storage, clock)),
                    tasks.create_task(
                        run_own(
                            own,
                            plane.servers,
                            settings.port,
                            settings.cidr,
                            clock,
                            url=f"https://{settings.address}:{settings.port}",
                            ca=settings.ca.read_text(),
                            fault_of=plane.fault_of,
                            believed=believed(settings),
                        )
                    ),
                ]
                staying = tasks.create_task(plane.stay_listed())
                report(f"API server on https://{LOOPBACK}:{settings.port}")
                process.started()
                await told_to_stop.wait()
                staying.cancel()
                await plane.leave()
                await asyncio.sleep(options.shutdown_delay)
                for task in acting:
                    task.cancel()

    process.run(main)
