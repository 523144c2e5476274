"""Procedures that train a network to be calibrated."""
