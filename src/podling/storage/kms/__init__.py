"""Keys that a KMS plugin keeps: its protocol (`plugin.py`), and what is sealed with its help
(`envelope.py`).
"""

import os

# gRPC reads it when it is first imported. Its handlers around fork() are for children that speak gRPC
# themselves; ours only exec, and would have it warn of that each time.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
