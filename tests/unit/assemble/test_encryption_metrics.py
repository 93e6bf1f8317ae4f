"""The metrics of encryption at rest have Kubernetes' names and labels, but for the server's identity."""

from __future__ import annotations

from pathlib import Path

from kms_plugin import KmsPlugin
from podling.assemble.encryption_metrics import FAILURE, SUCCESS, Reloads, encryption_metrics
from podling.process.metrics import Exposition
from podling.storage.kms.envelope import Kms
from podling.storage.kms.plugin import SERVICE, GrpcPlugin

ONE = "sha256:7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
ENVELOPE = "apiserver_envelope_encryption_"


def test_what_is_counted(tmp_path: Path) -> None:
    reloads = Reloads("sha256:1")
    reloads.count(SUCCESS)
    reloads.count(FAILURE)
    plugin = KmsPlugin()
    with plugin.serving(tmp_path / "kms.sock") as endpoint:
        kms = Kms("a", GrpcPlugin(endpoint, 10), lambda: 5.0)
        kms.look()
        kms.open(kms.seal(b"{}", b"key").stored, b"key")
        plugin.key_id = ""
        kms.look()
        text = Exposition([lambda: encryption_metrics(reloads, [kms])]).text().decode()
        kms.plugin.close()
    lines = set(text.splitlines())
    of_key = f'key_id_hash="{ONE}",provider_name="a"'
    calls = f'{{grpc_status_code="OK",method_name="{SERVICE}Status",provider_name="a"}}'
    assert lines >= {
        'apiserver_encryption_config_controller_last_config_info{hash="sha256:1"} 1.0',
        'apiserver_encryption_config_controller_automatic_reloads_total{status="success"} 1.0',
        'apiserver_encryption_config_controller_automatic_reloads_total{status="failure"} 1.0',
        f'{ENVELOPE}dek_source_cache_size{{provider_name="a"}} 1.0',
        f'{ENVELOPE}key_id_hash_total{{{of_key},transformation_type="to_storage"}} 1.0',
        f'{ENVELOPE}key_id_hash_total{{{of_key},transformation_type="from_storage"}} 1.0',
        f'{ENVELOPE}key_id_hash_last_timestamp_seconds{{{of_key},transformation_type="to_storage"}} 5.0',
        f"{ENVELOPE}key_id_hash_status_last_timestamp_seconds{{{of_key}}} 5.0",
        f'{ENVELOPE}invalid_key_id_from_status_total{{error="empty",provider_name="a"}} 1.0',
        f"{ENVELOPE}kms_operations_latency_seconds_count{calls} 2.0",
    }
