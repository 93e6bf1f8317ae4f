"""The service proxy: a node's counterpart of kube-proxy. It knows the client and the model."""
