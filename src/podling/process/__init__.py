"""What every part needs of its own process: turns of the event loop and its watchdog, waits and backoff,
descriptors, the table of mounts, histograms and metrics.
"""
