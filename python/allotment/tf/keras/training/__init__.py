"""How a model is trained: batches, what is compiled, replicas, and what is said of it."""
