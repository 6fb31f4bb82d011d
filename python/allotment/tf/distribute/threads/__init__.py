"""The threads that run replicas, and the steps in which they wait for each other."""
