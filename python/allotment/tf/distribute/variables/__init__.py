"""Variables with a copy on the device of each replica."""
