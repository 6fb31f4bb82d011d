"""Numbers with nouns, for sentences."""


def counted(number: int, noun: str, one: str = "", more: str = "") -> str:
    """Return a number with its noun, and a verb that fits it.

    Args:
        number: The number.
        noun: The noun for one; more get an ``s``.
        one: The verb for one, such as ``was``.
        more: The verb for all other numbers, such as ``were``.
    """
    text, verb = (f"{number} {noun}", one) if number == 1 else (f"{number} {noun}s", more)
    return f"{text} {verb}" if verb else text
