"""Around a pod's worker: what it knows, the calls its actions make, its directory, its end."""
