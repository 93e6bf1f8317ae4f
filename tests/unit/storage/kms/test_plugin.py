"""The protocol of KMS plugins over a socket: what is sent and answered, and how failures are worded."""

from __future__ import annotations

from pathlib import Path

import pytest

from kms_plugin import KmsPlugin
from podling.storage.kms.plugin import Encrypted, GrpcPlugin, PluginError, Status


def test_what_is_asked_and_answered(tmp_path: Path) -> None:
    with KmsPlugin(key_id="one").serving(tmp_path / "kms.sock") as endpoint:
        plugin = GrpcPlugin(endpoint, 10)
        assert plugin.status() == Status("v2", "ok", "one")
        encrypted = plugin.encrypt(b"seed", "1")
        assert (encrypted.key_id, encrypted.annotations) == ("one", (("kms.example.org", b"1"),))
        assert plugin.decrypt(encrypted, "2") == b"seed"
        refused = Encrypted(encrypted.ciphertext, "two", encrypted.annotations)
        with pytest.raises(PluginError) as why:
            plugin.decrypt(refused, "3")
        assert str(why.value) == "rpc error: code = InvalidArgument desc = it is not of this plugin"
        methods = [(method.rpartition("/")[2], code) for method, code in plugin.latencies]
        plugin.close()
    assert methods == [
        ("Status", "OK"),
        ("Encrypt", "OK"),
        ("Decrypt", "OK"),
        ("Decrypt", "InvalidArgument"),
    ]


def test_one_that_does_not_answer_or_is_not_there(tmp_path: Path) -> None:
    """A call ends when its time is over."""
    plugin = KmsPlugin()
    plugin.goes_on.clear()
    with plugin.serving(tmp_path / "kms.sock") as endpoint:
        for where in (endpoint, f"unix://{tmp_path}/nobody.sock"):
            slow = GrpcPlugin(where, 0.05)
            with pytest.raises(PluginError, match="rpc error: code = DeadlineExceeded"):
                slow.status()
            slow.close()
            with pytest.raises(PluginError, match="rpc error: code = Canceled"):
                slow.status()
        assert plugin.calls == ["Status"]
