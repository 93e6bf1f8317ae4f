"""Values about one pod that the layers above share: what is observed, the actions, its directory."""
