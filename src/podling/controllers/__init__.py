"""One file a controller, each a `reconcile(key)`."""
