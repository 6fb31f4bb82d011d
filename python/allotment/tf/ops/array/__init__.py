"""Operations that create tensors, and arrange, repeat and join their elements."""
