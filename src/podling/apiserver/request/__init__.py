"""One request: what it asks for, what the steps of the pipeline learn of it, and its answer."""
