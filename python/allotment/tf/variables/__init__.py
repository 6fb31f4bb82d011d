"""Variables, what combines their copies, and what waits for new ones."""
