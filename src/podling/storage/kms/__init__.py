"""Keys that a KMS plugin keeps: its protocol (`plugin.py`), and what is sealed with its help
(`envelope.py`).
"""

import os

# As in `podling.cri.grpc`: whatever imports gRPC first says so.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
