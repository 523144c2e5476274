"""Predictions that lie in files and tables, measured where they are."""
