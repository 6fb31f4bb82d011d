"""Training of models: batches, compiled losses and metrics, replicas, progress."""
