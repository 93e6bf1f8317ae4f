"""The pods' share of the node as cgroups: what is allowed to whom, and which files say so. Pure; the one who
writes them is `node/cgroups.py`."""
