"""Data sets, models, studies, runs and the store of their results."""
