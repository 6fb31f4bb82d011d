"""Variables of graphs."""
