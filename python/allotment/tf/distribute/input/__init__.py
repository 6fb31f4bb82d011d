"""Data sets whose batches are divided among replicas."""
