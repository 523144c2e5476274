"""Evaluations and predictions in; figures, tables and pages out."""
