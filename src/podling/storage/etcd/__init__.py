"""Storage in etcd: its messages (`etcd.proto`), the connection to its members, and the store."""

import os

# As in `podling.cri.grpc`: whatever imports gRPC first says so.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
# What goes wrong is said by who asked; gRPC would write ten lines of it beside.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from podling.storage.etcd.store import EtcdStorage, open

__all__ = ["EtcdStorage", "open"]
