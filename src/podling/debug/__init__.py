"""What `podling debug` decides: container specs, profiles, choice of target. Pure."""
