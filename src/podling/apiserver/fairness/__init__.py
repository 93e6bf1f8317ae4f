"""Whose requests wait for whose when the server has much to do: priority and fairness."""
