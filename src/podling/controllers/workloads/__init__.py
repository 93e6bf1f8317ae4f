"""The controllers of pods: they make those that a template asks for, or what makes them."""
