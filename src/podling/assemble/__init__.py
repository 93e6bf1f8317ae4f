"""Builds the parts and connects them: the only room that imports all of them. A file for each thing that can
run.

`up.py` is everything in one process, in one task group:

    prepare ─┬─▶ containerd, pods' network, pause image ───┬─▶ kubelet ─▶ ready
             └─▶ storage ─▶ API server ─▶ controllers ─────┘

`apiserver.py`, `controllers.py` (also the scheduler) and `kubelet.py` run a part alone, over HTTPS. They
share `control_plane.py` and `node.py` with `up.py`. `kubelet.py` imports nothing of the API server, which
import-linter holds: it serves whatever API server its kubeconfig names.
"""
