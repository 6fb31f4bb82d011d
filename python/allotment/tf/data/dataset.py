"""Data sets: sequences of elements that are made one after the other, as often as somebody goes through them.

Elements are tensors in host memory, alone or in tuples and dictionaries. What is done to them, ``transformations``
says; here is what users call, and what is known of the elements beforehand.
"""

import contextlib
import operator
from collections.abc import Callable, Iterator
from functools import reduce
from itertools import chain, islice
from typing import Any, NoReturn

import numpy as np

from allotment.devices.placement import thread
from allotment.errors import InvalidArgumentError
from allotment.tf.data import cardinality as counts
from allotment.tf.data import transformations as to
from allotment.tf.data.generator import generated, signature
from allotment.tf.data.iterators import OwnedIterator
from allotment.tf.data.options import Options
from allotment.tf.data.orders import Orders
from allotment.tf.data.spec import batched_spec, common_spec, row_spec, traced_spec
from allotment.tf.data.structure import (
    arrays_of,
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
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.tensors.tensor_spec import TensorSpec

#: For a number of parallel calls or of elements to fetch ahead, which have no effect.
AUTOTUNE = -1


class Dataset:
    """Elements, one after the other. As ``tf.data.Dataset``: made by its functions, and changed by its methods.

    Elements are made while somebody goes through them, on the thread that does: numbers of parallel calls and of
    elements to fetch ahead have no effect.
    """

    def __init__(
        self,
        kind: str,
        start: Callable[[], Iterator[Any]],
        spec: Callable[[], Any],
        count: int,
        *inputs: "Dataset",
    ) -> None:
        #: What TensorFlow prints it as.
        self._kind = kind
        #: Starts from the first element.
        self._start = start
        #: Finds out types and shapes of the elements.
        self._spec = spec
        #: How many elements there are; see ``cardinality``.
        self._count = count
        given = [each._options for each in inputs if each._options is not None]
        #: Those of the data sets that it is made of.
        self._options: Options | None = reduce(Options.merge, given) if given else None
        #: The tensors of a graph that it is made of.
        self._captured: tuple[Any, ...] = tuple(
            dict.fromkeys(tensor for each in inputs for tensor in each._captured)
        )

        #: Whether its iterators are made in the default graph, as in ``allotment.tf.v1``.
        self._records: bool = any(each._records for each in inputs)

    def _made_of(self, element: Any) -> "Dataset":
        """Note the tensors of a graph among those that this is made of."""
        self._captured = tuple(each for each in flatten(element) if is_symbolic(each))
        return self

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> "Dataset":
        """Make a data set of the slices of tensors along their first axis.

        Raises:
            ValueError: There are none, one has no axes, or first axes differ.
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
        """Make a data set of what a function gives when it is called and iterated over.

        Args:
            generator: The function. It is called each time somebody goes through the data set.
            output_types: The element types, in the structure of an element.
            output_shapes: The shapes, the same way.
            args: Arguments of the function; it gets them as arrays.
            output_signature: A ``TensorSpec`` for each value instead of the two.
            name: Not looked at.

        Raises:
            TypeError: No function, or it is not said what an element is.
            InvalidArgumentError: On the way: a value is something else than what was said.
        """
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        spec = signature(output_types, output_shapes, output_signature)
        given = [each.numpy() for each in flatten(normalized(tuple(args)))] if args else []
        return Dataset(
            "_FlatMapDataset",
            lambda: generated(lambda: iter(generator(*given)), spec),
            lambda: spec,
            counts.UNKNOWN,
        )

    @staticmethod
    def range(*args: Any, output_type: Any = int64, name: str | None = None) -> "Dataset":
        """Make a data set of numbers: up to an end, or from a start to an end, in steps.

        Raises:
            ValueError: Other than one to three numbers.
            TypeError: A number is not whole.
            InvalidArgumentError: Steps of 0.
        """
        if not 1 <= len(args) <= 3:
            raise ValueError(
                f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}."
            )
        numbers = [_whole(each, "a number of Dataset.range") for each in args]
        if len(numbers) == 3 and numbers[2] == 0:
            raise _invalid("step must be a non-zero integer.", "RangeDataset")
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
        """Make a data set of elements of several ones together, until one of them ends.

        Raises:
            TypeError: Something else than data sets, in tuples and dictionaries.
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

    @property
    def element_spec(self) -> Any:
        """Types and shapes of the elements, ``None`` for lengths that differ.

        Of what a function makes of elements they are found by calling it in a graph; where it cannot be, by making
        the first element.
        """
        return self._spec()

    def batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        num_parallel_calls: Any = None,
        deterministic: Any = None,
        name: str | None = None,
    ) -> "Dataset":
        """Stack elements, ``batch_size`` at a time; the last stack may be smaller.

        Raises:
            InvalidArgumentError: The size is less than 1; on the way: shapes differ.
        """
        size = _whole(batch_size, "batch_size")
        if size < 1:
            raise _invalid("Batch size must be greater than zero.", "BatchDatasetV2")
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
        """Give elements in random order, each chosen among the next ``buffer_size`` ones.

        Raises:
            InvalidArgumentError: The size is less than 1 and not ``UNKNOWN_CARDINALITY``, which means all.
        """
        size = _whole(buffer_size, "buffer_size")
        if size < 1 and size != counts.UNKNOWN:
            raise _invalid("buffer_size must be greater than zero or UNKNOWN_CARDINALITY", "ShuffleDatasetV3")
        orders = Orders(seed, reshuffle_each_iteration is not False)

        def start() -> Iterator[Any]:
            source = np.random.default_rng(orders.next())
            return to.shuffled(self._start(), None if size == counts.UNKNOWN else size, source)

        return Dataset("_ShuffleDataset", start, self._spec, self._count, self)

    def repeat(self, count: Any = None, name: str | None = None) -> "Dataset":
        """Go through the data set several times, for ever without a count or with -1."""
        times = -1 if count is None else _whole(count, "count")
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
        """Call a function with each element, on the CPU. A tuple's parts are arguments of their own.

        Raises:
            ValueError: No function; on the way: it returns what is no element.
        """
        _check_function(map_func)
        return Dataset(
            "_MapDataset",
            lambda: to.mapped(self._start(), map_func),
            lambda: traced_spec(map_func, self),
            self._count,
            self,
        )

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> "Dataset":
        """Keep the elements for which a function returns true.

        Raises:
            ValueError: No function; on the way: it returns no single truth value.
        """
        _check_function(predicate)
        known = self._count if self._count == 0 else counts.UNKNOWN
        return Dataset(
            "_FilterDataset", lambda: to.filtered(self._start(), predicate), self._spec, known, self
        )

    def prefetch(self, buffer_size: Any, name: str | None = None) -> "Dataset":
        """Return the same elements. How many to fetch ahead has no effect.

        Raises:
            InvalidArgumentError: It is less than 0 and not ``AUTOTUNE``.
        """
        if _whole(buffer_size, "buffer_size") < AUTOTUNE:
            raise _invalid(
                "buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning", "PrefetchDataset"
            )
        return Dataset("_PrefetchDataset", self._start, self._spec, self._count, self)

    def take(self, count: Any, name: str | None = None) -> "Dataset":
        """Give the first elements only; all with -1."""
        most = _whole(count, "count")
        return Dataset(
            "_TakeDataset",
            lambda: to.reordered(self._start(), lambda each: islice(each, None if most < 0 else most)),
            self._spec,
            counts.of_first(self._count, most),
            self,
        )

    def skip(self, count: Any, name: str | None = None) -> "Dataset":
        """Leave out the first elements; all with -1."""
        skipped = _whole(count, "count")
        return Dataset(
            "_SkipDataset",
            lambda: (
                iter(())
                if skipped < 0
                else to.reordered(self._start(), lambda each: islice(each, skipped, None))
            ),
            self._spec,
            counts.of_rest(self._count, skipped),
            self,
        )

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> "Dataset":
        """Give each ``num_shards``-th element, from number ``index`` on: the part of one of several processes.

        Raises:
            InvalidArgumentError: An index that is not between 0 and ``num_shards``; no shards.
        """
        count, first = _whole(num_shards, "num_shards"), _whole(index, "index")
        if count < 1:
            raise _invalid(
                f"Number of shards must be greater than zero (currently num_shards = {count}).",
                "ShardDataset",
            )
        if not 0 <= first < count:
            raise _invalid(
                f"Index must be between 0 and {count - 1} (currently index = {first}).", "ShardDataset"
            )
        return Dataset(
            "_ShardDataset",
            lambda: islice(self._start(), first, None, count),
            self._spec,
            counts.of_batches(counts.of_rest(self._count, first), count, drop_remainder=False),
            self,
        )

    def with_options(self, options: Options, name: str | None = None) -> "Dataset":
        """Return the same elements, with options beside those that there are.

        Raises:
            TypeError: No ``tf.data.Options``.
        """
        if not isinstance(options, Options):
            raise TypeError(f"options must be a tf.data.Options, not {options!r}")
        made = Dataset("_OptionsDataset", self._start, self._spec, self._count, self)
        made._options = (self._options or Options()).merge(options)
        return made

    def options(self) -> Options:
        """Return the options, which cannot be changed; ``with_options`` makes a data set with others."""
        return (self._options or Options())._frozen()

    def enumerate(self, start: Any = 0, name: str | None = None) -> "Dataset":
        """Put a number before each element."""
        first = _whole(start, "start")
        return Dataset(
            "_ZipDataset",
            lambda: to.counted(self._start(), first),
            lambda: (TensorSpec([], int64), self._spec()),
            self._count,
            self,
        )

    def cache(self, filename: str = "", name: str | None = None) -> "Dataset":
        """Keep the elements the first time that somebody goes through all of them.

        Raises:
            NotImplementedError: A name of a file: elements are kept in memory only.
        """
        if filename:
            raise NotImplementedError(
                f"Dataset.cache keeps elements in memory only, not in a file such as {filename!r}: leave the name out"
            )
        return Dataset("CacheDataset", to.Cache(self._start).start, self._spec, self._count, self)

    def concatenate(self, dataset: "Dataset", name: str | None = None) -> "Dataset":
        """Give the elements of another data set behind those of this one.

        Raises:
            TypeError: No data set, or its elements have another structure or other types.
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

    def cardinality(self, name: str | None = None) -> EagerTensor:
        """Return the number of elements, or ``INFINITE_CARDINALITY`` or ``UNKNOWN_CARDINALITY``."""
        with on_host():
            return to_tensor(self._count, like=int64)

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

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Go through the elements as NumPy's values."""
        return (arrays_of(element) for element in self._start())

    def __iter__(self) -> OwnedIterator:
        if thread.state.graph is not None:
            raise RuntimeError(
                "`tf.data.Dataset` only supports Python-style iteration in eager mode or within tf.function. In a "
                "graph use tf.compat.v1.data.make_one_shot_iterator(dataset)."
            )
        return OwnedIterator(self._start(), self._spec)

    def __len__(self) -> int:
        if self._count == counts.INFINITE:
            raise TypeError("The dataset is infinite.")
        if self._count == counts.UNKNOWN:
            raise TypeError("The dataset length is unknown.")
        return self._count

    def __bool__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> NoReturn:
        own = getattr(type(self), name, None)
        if isinstance(own, property):
            # Found, and an AttributeError came out of it: of a function of the program, say.
            own.__get__(self)
        offered = [each for each in vars(Dataset) if not each.startswith("_")]
        raise AttributeError(
            f"Dataset has no attribute {name!r} here. There are: {', '.join(sorted(offered))}."
        )

    def __repr__(self) -> str:
        return f"<{self._kind} element_spec={self.element_spec}>"


def _whole(value: Any, what: str) -> int:
    if not isinstance(value, bool):
        with contextlib.suppress(TypeError):
            return operator.index(value)
    raise TypeError(f"{what} must be a whole number, not {value!r}")


def _invalid(text: str, op: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, f"{text} [Op:{op}] name: ")


def _check_function(function: Any) -> None:
    if not callable(function):
        raise ValueError(
            f"Argument `func` must be a callable. Received func={function} (of type {type(function)})"
        )


__all__ = ["AUTOTUNE", "Dataset"]
