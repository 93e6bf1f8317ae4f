"""What is observed of a pod, as its status: the rules `status.py` puts together, and who publishes it."""
