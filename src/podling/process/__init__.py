"""What every part needs of its own process: waits, the watchdog of the loop, other programs, TLS, mounts,
histograms and metrics.
"""
