"""Operations that pick, place and sort elements."""
