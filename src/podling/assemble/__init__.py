"""Builds the parts and runs them: the only room that knows them all. A file for each thing that can be run.

`up.py` is everything in one process, in one task group:

    prepare ─┬─▶ containerd, pods' network, pause image ───┬─▶ kubelet ─▶ ready
             └─▶ storage ─▶ API server ─▶ controllers ─────┘

`apiserver.py`, `control.py` and `kubelet.py` run a part alone, over HTTPS; they are made of the same pieces
(`control_plane.py`, `acting.py`, `node.py`). `kubelet.py` imports nothing of the server's, which
import-linter holds: it serves whatever API server its kubeconfig names.
"""
