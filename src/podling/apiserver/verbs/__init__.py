"""One file a verb: recognise, refuse by name, call the registry, shape the answer."""
