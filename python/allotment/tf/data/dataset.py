"""``tf.data.Dataset``: data sets and the methods that make and transform them.

Elements are tensors in host memory, alone or in tuples and dictionaries. ``transformations.py`` transforms them;
the methods here check arguments, and derive types, shapes and numbers of elements.

Longer than 300 lines: the methods of one class, a third of them documentation.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from allotment.tf.data import cardinality as counts
from allotment.tf.data import transformations as to
from allotment.tf.data.arguments import (
    AUTOTUNE,
    check_function,
    check_parallel_calls,
    integer_argument,
    invalid_argument,
)
from allotment.tf.data.elements import ElementSource
from allotment.tf.data.generator import generated, signature
from allotment.tf.data.options import Options
from allotment.tf.data.orders import Orders
from allotment.tf.data.spec import batched_spec, common_spec, row_spec, traced_spec
from allotment.tf.data.structure import (
    bound,
    flatten,
    is_symbolic,
    normalized,
    on_host,
    pack,
    spec_of,
)
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.dtype import as_dtype, int64
from allotment.tf.tensors.tensor_spec import TensorSpec


class Dataset(ElementSource):
    """A sequence of elements. As ``tf.data.Dataset``: static methods make data sets, methods transform them.

    The thread that iterates over a data set makes its elements: numbers of parallel calls and of elements to prefetch
    have no effect.
    """

    def _made_of(self, element: Any) -> "Dataset":
        """Set the tensors of a graph among the values of ``element``."""
        self._captured = tuple(each for each in flatten(element) if is_symbolic(each))
        return self

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> "Dataset":
        """Make a data set of the slices of tensors along their first axis.

        Raises:
            ValueError: There is no tensor, one has no axes, or first axes differ.
        """
        given = normalized(tensors)
        shapes = [each.shape for each in flatten(spec_of(given))]
        if any(shape.rank == 0 for shape in shapes):
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        known = [shape[0] for shape in shapes if shape.rank and shape[0] is not None]
        for length in known:
            if length != known[0]:
                raise ValueError(f"Dimensions {known[0]} and {length} are not compatible")
        spec = row_spec(spec_of(given))
        count = known[0] if known else counts.UNKNOWN
        made = Dataset("_TensorSliceDataset", lambda: to.rows(bound(given)), lambda: spec, count)
        return made._made_of(given)

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> "Dataset":
        """Make a data set of one element.

        Raises:
            ValueError: There is no tensor in it.
        """
        given = normalized(tensors)
        made = Dataset("_TensorDataset", lambda: iter([bound(given)]), lambda: spec_of(given), 1)
        return made._made_of(given)

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: tuple[Any, ...] | None = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> "Dataset":
        """Make a data set of the values that a generator function yields.

        Args:
            generator: The function; each iteration over the data set calls it.
            output_types: The element types, in the structure of an element.
            output_shapes: The shapes, in the same structure.
            args: Arguments of the function, which it gets as arrays.
            output_signature: A ``TensorSpec`` for each value instead of the two.
            name: Has no effect.

        Raises:
            TypeError: Not a function, or no types are given.
            InvalidArgumentError: During iteration: a value has another structure, type or shape, or the function raises
                a ``TypeError`` or ``ValueError``.
            UnknownError: During iteration: the function raises another error.
        """
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        spec = signature(output_types, output_shapes, output_signature)
        given = [each.numpy() for each in flatten(normalized(tuple(args)))] if args else []
        return Dataset(
            "_FlatMapDataset",
            lambda: generated(lambda: generator(*given), spec),
            lambda: spec,
            counts.UNKNOWN,
        )

    @staticmethod
    def range(*args: Any, output_type: Any = int64, name: str | None = None) -> "Dataset":
        """Make a data set of integers: ``range(stop)``, ``range(start, stop)`` or ``range(start, stop, step)``.

        Raises:
            ValueError: Not one to three numbers.
            TypeError: A number is no integer.
            InvalidArgumentError: The step is 0.
        """
        if not 1 <= len(args) <= 3:
            raise ValueError(
                f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}."
            )
        numbers = [integer_argument(each, "a number of Dataset.range") for each in args]
        if len(numbers) == 3 and numbers[2] == 0:
            raise invalid_argument("step must be a non-zero integer.", "RangeDataset")
        dtype = as_dtype(output_type)
        every = range(*numbers)

        def start() -> Iterator[Any]:
            for number in every:
                with on_host():
                    made = to_tensor(number, like=dtype)
                yield made

        return Dataset("_RangeDataset", start, lambda: TensorSpec([], dtype), len(every))

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> "Dataset":
        """Make a data set whose elements combine one of each of several data sets, until one of them ends.

        Raises:
            TypeError: A value in the structure is no data set.
        """
        if not args and datasets is None:
            raise TypeError("Must pass at least one dataset to `zip`.")
        if args and datasets is not None:
            raise TypeError("Both `*args` and `datasets` cannot be set.")
        structure = datasets if datasets is not None else args[0] if len(args) == 1 else args
        flat = flatten(structure)
        for each in flat:
            if isinstance(each, list):
                raise TypeError(
                    "Invalid input to `zip`. Inputs are expected to be (nested) structures of `tf.data.Dataset` "
                    "objects. Python `list` is not supported and you should use `tuple` instead."
                )
            if not isinstance(each, Dataset):
                raise TypeError(
                    "Invalid input to `zip`. Inputs are expected to be (nested) structures of `tf.data.Dataset` "
                    f"objects but encountered object of type {type(each)}."
                )
        return Dataset(
            "_ZipDataset",
            lambda: to.zipped(structure, [each._start() for each in flat]),
            lambda: pack(structure, [each._spec() for each in flat]),
            counts.of_least([each._count for each in flat]),
            *flat,
        )

    def batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        num_parallel_calls: Any = None,
        deterministic: Any = None,
        name: str | None = None,
    ) -> "Dataset":
        """Stack ``batch_size`` elements to one; the last batch may be smaller.

        Raises:
            InvalidArgumentError: The size is less than 1; during iteration: shapes differ.
        """
        check_parallel_calls(num_parallel_calls, "ParallelBatchDataset")
        size = integer_argument(batch_size, "batch_size")
        if size < 1:
            raise invalid_argument("Batch size must be greater than zero.", "BatchDatasetV2")
        drop = bool(drop_remainder)
        return Dataset(
            "_BatchDataset",
            lambda: to.batched(self._start(), size, drop),
            lambda: batched_spec(self._spec(), size if drop else None),
            counts.of_batches(self._count, size, drop),
            self,
        )

    def shuffle(
        self,
        buffer_size: Any,
        seed: Any = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> "Dataset":
        """Shuffle elements: each is chosen at random from a buffer of the next ``buffer_size`` ones.

        Raises:
            InvalidArgumentError: The size is less than 1 and not ``UNKNOWN_CARDINALITY``, which means all.
        """
        size = integer_argument(buffer_size, "buffer_size")
        if size < 1 and size != counts.UNKNOWN:
            raise invalid_argument(
                "buffer_size must be greater than zero or UNKNOWN_CARDINALITY", "ShuffleDatasetV3"
            )
        orders = Orders(seed, reshuffle_each_iteration is not False)

        def start() -> Iterator[Any]:
            source = np.random.default_rng(orders.next())
            return to.shuffled(self._start(), None if size == counts.UNKNOWN else size, source)

        return Dataset("_ShuffleDataset", start, self._spec, self._count, self)

    def repeat(self, count: Any = None, name: str | None = None) -> "Dataset":
        """Repeat the data set ``count`` times, or for ever with ``None`` or -1."""
        times = -1 if count is None else integer_argument(count, "count")
        return Dataset(
            "_RepeatDataset",
            lambda: to.repeated(self._start, times),
            self._spec,
            counts.of_repeats(self._count, times),
            self,
        )

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: Any = None,
        deterministic: Any = None,
        synchronous: Any = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> "Dataset":
        """Replace each element by the result of a function, on the CPU. Parts of a tuple are separate arguments.

        Raises:
            ValueError: Not a function; during iteration: its result is no element.
            InvalidArgumentError: ``num_parallel_calls`` is less than 1 and not ``AUTOTUNE``.
        """
        check_function(map_func)
        check_parallel_calls(num_parallel_calls, "ParallelMapDatasetV2")
        mapped = Dataset(
            "_MapDataset",
            lambda: to.mapped(self._start(), map_func),
            lambda: traced_spec(map_func, self.element_spec, lambda: iter(mapped)),
            self._count,
            self,
        )
        return mapped

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> "Dataset":
        """Keep the elements for which a function returns true.

        Raises:
            ValueError: Not a function; during iteration: its result is no bool scalar.
        """
        check_function(predicate)
        known = self._count if self._count == 0 else counts.UNKNOWN
        return Dataset(
            "_FilterDataset", lambda: to.filtered(self._start(), predicate), self._spec, known, self
        )

    def prefetch(self, buffer_size: Any, name: str | None = None) -> "Dataset":
        """Return a data set with the same elements; the buffer size has no effect.

        Raises:
            InvalidArgumentError: The size is less than 0 and not ``AUTOTUNE``.
        """
        if integer_argument(buffer_size, "buffer_size") < AUTOTUNE:
            raise invalid_argument(
                "buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning", "PrefetchDataset"
            )
        return Dataset("_PrefetchDataset", self._start, self._spec, self._count, self)

    def take(self, count: Any, name: str | None = None) -> "Dataset":
        """Keep the first ``count`` elements; all with -1."""
        most = integer_argument(count, "count")
        return Dataset(
            "_TakeDataset",
            lambda: to.taken(self._start(), most),
            self._spec,
            counts.of_first(self._count, most),
            self,
        )

    def skip(self, count: Any, name: str | None = None) -> "Dataset":
        """Drop the first ``count`` elements; all with -1."""
        skipped = integer_argument(count, "count")
        return Dataset(
            "_SkipDataset",
            lambda: iter(()) if skipped < 0 else to.every(self._start(), skipped, 1),
            self._spec,
            counts.of_rest(self._count, skipped),
            self,
        )

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> "Dataset":
        """Keep each ``num_shards``-th element from ``index`` on: the part of one of several processes.

        Raises:
            InvalidArgumentError: ``num_shards`` is less than 1, or ``index`` is not in ``[0, num_shards)``.
        """
        count, first = integer_argument(num_shards, "num_shards"), integer_argument(index, "index")
        if count < 1:
            raise invalid_argument(
                f"Number of shards must be greater than zero (currently num_shards = {count}).",
                "ShardDataset",
            )
        if not 0 <= first < count:
            raise invalid_argument(
                f"Index must be between 0 and {count - 1} (currently index = {first}).", "ShardDataset"
            )
        return Dataset(
            "_ShardDataset",
            lambda: to.every(self._start(), first, count),
            self._spec,
            counts.of_batches(counts.of_rest(self._count, first), count, drop_remainder=False),
            self,
        )

    def with_options(self, options: Options, name: str | None = None) -> "Dataset":
        """Return a data set with the same elements and with further options.

        Raises:
            TypeError: ``options`` is no ``tf.data.Options``.
        """
        if not isinstance(options, Options):
            raise TypeError(f"options must be a tf.data.Options, not {options!r}")
        made = Dataset("_OptionsDataset", self._start, self._spec, self._count, self)
        made._options = (self._options or Options()).merge(options)
        return made

    def enumerate(self, start: Any = 0, name: str | None = None) -> "Dataset":
        """Number the elements: ``(0, first), (1, second), ...``."""
        first = integer_argument(start, "start")
        return Dataset(
            "_ZipDataset",
            lambda: to.counted(self._start(), first),
            lambda: (TensorSpec([], int64), self._spec()),
            self._count,
            self,
        )

    def cache(self, filename: str = "", name: str | None = None) -> "Dataset":
        """Keep all elements in memory after the first complete iteration.

        Raises:
            NotImplementedError: A file name is given: elements are kept in memory only.
        """
        if filename:
            raise NotImplementedError(
                f"Dataset.cache keeps elements in memory only, not in a file such as {filename!r}: leave the name out"
            )
        return Dataset("CacheDataset", to.Cache(self._start).start, self._spec, self._count, self)

    def concatenate(self, dataset: "Dataset", name: str | None = None) -> "Dataset":
        """Append the elements of another data set.

        Raises:
            TypeError: Not a data set, or its elements have another structure or other types.
        """
        if not isinstance(dataset, Dataset):
            raise TypeError(f"`dataset` must be a tf.data.Dataset, not {dataset!r}")
        spec = common_spec(self._spec(), dataset._spec())
        return Dataset(
            "_ConcatenateDataset",
            lambda: chain(self._start(), dataset._start()),
            lambda: spec,
            counts.of_both(self._count, dataset._count),
            *(self, dataset),
        )

    def make_one_shot_iterator(self) -> Any:
        """Make an iterator of TensorFlow 1, which has this method; see ``compat.v1.data.make_one_shot_iterator``."""
        from allotment.tf.data.graph_iterators import make_one_shot_iterator

        return self._recording(make_one_shot_iterator)(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Any:
        """Make an iterator of TensorFlow 1; see ``compat.v1.data.make_initializable_iterator``."""
        from allotment.tf.data.graph_iterators import make_initializable_iterator

        return self._recording(make_initializable_iterator)(self, shared_name)

    def _recording(self, function: Callable[..., Any]) -> Callable[..., Any]:
        from allotment.tf.graph.default import in_graph

        return in_graph(function) if self._records else function

    def __getattr__(self, name: str) -> NoReturn:
        own = getattr(type(self), name, None)
        if isinstance(own, property):
            # The property exists and raised an AttributeError itself, as a function of the program may.
            own.__get__(self)
        offered = [each for each in dir(Dataset) if not each.startswith("_")]
        raise AttributeError(
            f"Dataset has no attribute {name!r} here. There are: {', '.join(sorted(offered))}."
        )


__all__ = ["AUTOTUNE", "Dataset"]
