"""Variables of TensorFlow 1: variables by name, their scopes, initializers and collections."""
