"""Names of reductions of the losses of samples."""

from typing import Final


class Reduction:
    """Names of reductions. As ``keras.losses.Reduction``."""

    AUTO: Final = "auto"
    NONE: Final = "none"
    SUM: Final = "sum"
    SUM_OVER_BATCH_SIZE: Final = "sum_over_batch_size"


__all__ = ["Reduction"]
