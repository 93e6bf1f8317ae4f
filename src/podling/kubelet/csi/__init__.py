"""The CSI drivers of the node: their registration, what the API is told of them, and calls to them."""
