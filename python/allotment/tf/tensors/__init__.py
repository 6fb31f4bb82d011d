"""Values: element types, shapes, tensors and their specifications."""
