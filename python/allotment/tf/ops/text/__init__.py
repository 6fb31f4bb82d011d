"""Operations on texts."""
