"""Reductions over axes and segments, running totals and counts."""
