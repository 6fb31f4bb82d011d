"""The operations that values are converted to tensors with: they stand below ``convert``, and most others above."""
