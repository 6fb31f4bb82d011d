"""Random things of NumPy and five runtimes in one pool: made, computed, refused and dropped."""

import math
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from allotment import OutOfMemoryError, Pool
from allotment.integrations import numpy as pooled_numpy
from allotment.integrations import onnxruntime as pooled_onnxruntime
from allotment.integrations import opencl as pooled_opencl
from allotment.integrations import pyarrow as pooled_pyarrow
from allotment.integrations import tvm_ffi as pooled_tvm_ffi
from support.guests.ggml import FRONT, Ggml, Tensor
from support.guests.opencl import pyopencl
from support.guests.tvm_ffi_module import compiled, loaded
from support.models import mlp
from support.pools.owners import requested_by_owner

LIMIT = 12 << 20
WIDTHS = (16, 64, 200)
LAYERS = 2


class Guests:
    """What the players share; skips the test if a guest is missing.

    Args:
        folder: A folder for what is compiled.
    """

    def __init__(self, folder: Path) -> None:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
        self.cl = pyopencl()
        self.context = self.cl.Context([self.cl.get_platforms()[0].get_devices()[0]])
        self.ggml = Ggml(folder)
        self.empty = loaded(compiled(folder))
        for width in WIDTHS:
            if width not in MODELS:
                pool, model = Pool(LIMIT), mlp(width, LAYERS)
                with pooled_onnxruntime.use(pool):
                    made = session(model)
                MODELS[width] = (model, pool.stats().requested)
                del made


#: By width: a model, and the bytes of its weights in the layout that ONNX Runtime chooses for the processor.
MODELS: dict[int, tuple[bytes, int]] = {}


def session(model: bytes) -> Any:
    import onnxruntime

    options = pooled_onnxruntime.session_options()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class Player:
    """Makes and drops random things of every guest in one pool, and knows what each guest holds."""

    def __init__(self, pool: Pool, seed: int, guests: "Guests") -> None:
        self.pool = pool
        self.guests = guests
        self.tensors: list[Any] = []
        self.random = random.Random(seed)
        self.refused = 0
        self.buffers: list[Any] = []
        self.results: list[Any] = []
        self.arrays: list[np.ndarray[Any, Any]] = []
        #: With the bytes of its weights.
        self.sessions: list[tuple[Any, int]] = []
        self.outputs: list[np.ndarray[Any, Any]] = []
        self.memory = pooled_pyarrow.memory_pool(pool)
        self.queue = guests.cl.CommandQueue(guests.context)
        self.make_cl_buffer = pooled_opencl.allocator(pool, self.queue)
        self.cl_arrays: list[Any] = []
        self.buffer_type = guests.ggml.buffer_type(pool)
        self.ggml_tensors: list[Tensor] = []

    def held(self) -> list[list[Any]]:
        return [
            self.tensors,
            self.buffers,
            self.results,
            self.arrays,
            self.sessions,
            self.outputs,
            self.cl_arrays,
            self.ggml_tensors,
        ]

    def size(self) -> int:
        return int(2 ** self.random.uniform(0, 21.5))

    def allocate_buffer(self) -> None:
        import pyarrow

        self.buffers.append(pyarrow.allocate_buffer(self.size(), memory_pool=self.memory, resizable=True))

    def resize_buffer(self) -> None:
        if self.buffers:
            self.random.choice(self.buffers).resize(self.size(), shrink_to_fit=self.random.random() < 0.5)

    def compute(self) -> None:
        import pyarrow
        import pyarrow.compute

        values = pyarrow.array(np.arange(self.size() // 8 + 1))
        self.results.append(pyarrow.compute.add(values, values, memory_pool=self.memory))

    def make_array(self) -> None:
        with pooled_numpy.use(self.pool):
            self.arrays.append(np.zeros(self.size(), np.uint8))

    def make_tensor(self) -> None:
        with pooled_tvm_ffi.use(self.pool):
            self.tensors.append(self.guests.empty(self.random.randint(1, 3), self.size(), dtype="int8"))

    def make_cl_array(self) -> None:
        import pyopencl.array

        allocate = self.make_cl_buffer
        self.cl_arrays.append(pyopencl.array.zeros(self.queue, self.size(), np.uint8, allocator=allocate))

    def copy_on_device(self) -> None:
        if self.cl_arrays:
            self.cl_arrays.append(self.random.choice(self.cl_arrays).copy())

    def make_ggml_tensor(self) -> None:
        self.ggml_tensors.append(Tensor(self.guests.ggml, self.buffer_type, self.size() // 4 + 1))

    def open_session(self) -> None:
        if len(self.sessions) < 8:
            width = self.random.choice(WIDTHS)
            self.sessions.append((session(MODELS[width][0]), MODELS[width][1]))

    def run_session(self) -> None:
        if self.sessions:
            made, _ = self.random.choice(self.sessions)
            width = made.get_inputs()[0].shape[1]
            x = np.ones((self.random.randint(1, 500), width), np.float32)
            self.outputs.append(made.run(None, {"x": x})[0])

    def drop(self) -> None:
        things = self.random.choice(self.held())
        if things:
            del things[self.random.randrange(len(things))]

    def step(self) -> None:
        """Do one thing; a refusal must be the guest's own exception with the pool's report."""
        makes = (
            self.allocate_buffer,
            self.resize_buffer,
            self.compute,
            self.make_array,
            self.make_tensor,
            self.open_session,
            self.run_session,
            self.make_cl_array,
            self.copy_on_device,
            self.make_ggml_tensor,
        )
        action = self.random.choice([*makes, *[self.drop] * 4])
        text = ""
        try:
            action()
        except Exception as error:
            text = self.report(error)
            error.__traceback__ = None
        if text:
            assert "out of memory: asked for" in text, text
            self.refused += 1

    def report(self, error: Exception) -> str:
        kind = type(error)
        # A null of ggml's is a MemoryError here, and so is tvm-ffi's refusal.
        own = kind.__module__.startswith(("pyarrow", "onnxruntime", "numpy", "pyopencl"))
        assert own or kind is MemoryError, repr(error)
        assert not isinstance(error, OutOfMemoryError)
        # NumPy's error has the report as a note, unless its first array was refused: then it is the cause.
        notes = getattr(error, "__notes__", [])
        return "\n".join([str(error), *notes, str(error.__cause__ or "")])

    def holds(self) -> dict[str, int]:
        """Return what each guest holds in bytes, by its own figures."""
        return {
            "pyarrow": self.memory.bytes_allocated(),
            "onnxruntime": sum(nbytes for _, nbytes in self.sessions) + sum(y.nbytes for y in self.outputs),
            "tvm_ffi": sum(math.prod(tensor.shape) for tensor in self.tensors),
            "opencl": sum(array.nbytes for array in self.cl_arrays),
            "ggml": sum(tensor.nbytes + FRONT for tensor in self.ggml_tensors),
            "numpy": sum(array.nbytes for array in self.arrays),
        }

    def check(self) -> None:
        """Compare the pool's figures with the sums of what the guests hold."""
        expected = self.holds()
        self.settle(expected["opencl"])
        requested = dict.fromkeys(expected, 0)
        in_use = 0
        for region in self.pool.snapshot().regions:
            for chunk in region.chunks:
                if chunk.in_use:
                    # The owners of NumPy's arrays are lines of this file.
                    requested[chunk.owner if chunk.owner in expected else "numpy"] += chunk.requested
                    in_use += chunk.size
        assert requested == expected
        stats = self.pool.stats()
        assert stats.requested == sum(expected.values())
        assert stats.in_use == in_use == stats.requested + stats.internal_fragmentation

    def settle(self, expected: int) -> None:
        """Wait until OpenCL holds as much: it frees a buffer a moment after the last command that uses it."""
        self.queue.finish()
        deadline = time.monotonic() + 10
        while requested_by_owner(self.pool).get("opencl", 0) != expected and time.monotonic() < deadline:
            time.sleep(0.001)

    def inject(self) -> None:
        """Refuse growth until the next call, or allow it."""
        self.pool.trim()
        limit = max(self.pool.stats().reserved, 1 << 20) if self.random.random() < 0.5 else LIMIT
        self.pool.set_limit(limit)

    def end(self) -> None:
        for things in self.held():
            things.clear()
        self.queue.finish()
