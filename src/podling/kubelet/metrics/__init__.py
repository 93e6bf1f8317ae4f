"""The kubelet's metrics under Kubernetes' names: the counters, and their text for `/metrics`."""
