"""TensorFlow's public names: those that shadow Python's, and the errors for those that are missing."""
