"""Top-level names of TensorFlow 1 that are in namespaces today."""

from typing import Final

#: Names that are only in a namespace today.
_IN_NAMESPACES: Final = {
    "math": (
        "accumulate_n angle bincount ceil confusion_matrix conj count_nonzero cumprod digamma erf erfc "
        "expm1 floordiv floormod imag invert_permutation is_finite is_inf is_nan is_non_decreasing "
        "is_strictly_increasing lgamma log log1p log_sigmoid logical_xor real reciprocal rint rsqrt "
        "segment_max segment_mean segment_min segment_prod segment_sum squared_difference "
        "unsorted_segment_max unsorted_segment_min unsorted_segment_prod unsorted_segment_sum"
    ),
    "debugging": ("check_numerics"),
    "linalg": ("cholesky cross matrix_transpose qr svd trace"),
    "strings": ("substr"),
    "random": ("truncated_normal"),
}
#: Names that have another name today.
_RENAMED: Final = {
    "floor_div": "math.floordiv",
    "lin_space": "linspace",
    "matrix_band_part": "linalg.band_part",
    "matrix_determinant": "linalg.det",
    "matrix_diag": "linalg.diag",
    "matrix_diag_part": "linalg.diag_part",
    "matrix_inverse": "linalg.inv",
    "matrix_set_diag": "linalg.set_diag",
    "matrix_solve": "linalg.solve",
    "matrix_triangular_solve": "linalg.triangular_solve",
    "mod": "math.floormod",
    "random_gamma": "random.gamma",
    "random_normal": "random.normal",
    "random_shuffle": "random.shuffle",
    "random_uniform": "random.uniform",
    "reverse_v2": "reverse",
    "self_adjoint_eig": "linalg.eigh",
    "self_adjoint_eigvals": "linalg.eigvalsh",
    "set_random_seed": "random.set_seed",
    "string_join": "strings.join",
    "string_strip": "strings.strip",
    "string_to_number": "strings.to_number",
    "where_v2": "where",
}
#: The names that moved and kept their arguments: old name to new path.
MOVED: Final = _RENAMED | {
    name: f"{namespace}.{name}" for namespace, names in _IN_NAMESPACES.items() for name in names.split()
}

__all__ = ["MOVED"]
