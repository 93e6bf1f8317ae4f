"""A typed client of the Kubernetes API over HTTPS or in process, with informers, a work queue and an event
recorder.
"""
