"""What every part needs of the process it runs in: turns of the loop, its watchdog, descriptors, mounts."""
