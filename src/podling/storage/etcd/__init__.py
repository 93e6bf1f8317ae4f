"""Storage in etcd: its messages (`etcd.proto`), the connection to its members, and the store."""

from podling.storage.etcd.store import EtcdStorage, open

__all__ = ["EtcdStorage", "open"]
