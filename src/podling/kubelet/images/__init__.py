"""Images on the node: pulling, and image garbage collection."""
