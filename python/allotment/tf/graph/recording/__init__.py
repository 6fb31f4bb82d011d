"""Records operations as nodes while a graph is the default."""
