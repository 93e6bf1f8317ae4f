"""One typed client of the Kubernetes API over two transports, with informers and a work queue."""
