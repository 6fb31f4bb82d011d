"""Stand-ins for the parts of PyTorch, RMM, Numba, cuda.core and Warp that take memory from elsewhere.

They compute nothing. Each calls an allocator as the real package does; names and signatures were compared with the
releases that the integrations name. `install(name)` puts one in the place of the package.

Longer than 300 lines: a stand-in for each library, and the table that installs them.
"""

import ctypes
import itertools
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from support.arrays.cupy_memory import Cupy


def module(name: str, **attributes: Any) -> types.ModuleType:
    made = types.ModuleType(name)
    made.__dict__.update(attributes)
    return made


class Stream:
    """A stream with the protocol that RMM, cuda.core and Warp share."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


# PyTorch


class TorchRefusalError(RuntimeError):
    """``torch.OutOfMemoryError``, which is a RuntimeError there."""


class CustomAllocator:
    """``torch._C._cuda_customAllocator``: two addresses of functions."""

    def __init__(self, alloc: int, free: int) -> None:
        c = ctypes
        self.alloc = c.CFUNCTYPE(c.c_void_p, c.c_ssize_t, c.c_int, c.c_void_p)(alloc)
        self.free = c.CFUNCTYPE(None, c.c_void_p, c.c_ssize_t, c.c_int, c.c_void_p)(free)


class CUDAPluggableAllocator:
    """``torch.cuda.memory.CUDAPluggableAllocator``: looks functions up by name."""

    def __init__(self, path_to_so_file: str, alloc_fn_name: str, free_fn_name: str) -> None:
        library = ctypes.CDLL(path_to_so_file)
        alloc, free = (
            ctypes.cast(getattr(library, name), ctypes.c_void_p).value
            for name in (alloc_fn_name, free_fn_name)
        )
        assert alloc is not None
        assert free is not None
        self._allocator = CustomAllocator(alloc, free)

    def allocator(self) -> CustomAllocator:
        return self._allocator


class Torch:
    """A caching allocator without a cache: a tensor is a segment, of the pool that is active or of its own memory."""

    def __init__(self) -> None:
        #: The active pools of each device; the last one that was begun serves.
        self.active: dict[int, list[MemPool]] = {}
        self.pools: dict[tuple[int, int], MemPool] = {}
        self.ids = itertools.count(1)
        self.own: list[int] = []
        self.device = 0

    @contextmanager
    def current_device(self, device: int) -> Iterator[None]:
        former, self.device = self.device, device
        try:
            yield
        finally:
            self.device = former

    def begin(self, device: int, pool_id: tuple[int, int]) -> None:
        # PyTorch would make another pool without the allocator there.
        assert self.pools[pool_id].device == device, "a MemPool serves the device on which it was made"
        self.active.setdefault(device, []).append(self.pools[pool_id])

    def end(self, device: int, pool_id: tuple[int, int]) -> None:
        self.active[device].remove(self.pools[pool_id])

    def release(self, device: int, pool_id: tuple[int, int]) -> None:
        assert pool_id in self.pools
        assert self.pools[pool_id] not in self.active[device]

    @contextmanager
    def use_mem_pool(self, pool: "MemPool", device: int | None = None) -> Iterator[None]:
        device = device or 0
        self.begin(device, pool.id)
        try:
            yield
        finally:
            self.end(device, pool.id)
            self.release(device, pool.id)

    def tensor(self, nbytes: int, device: int = 0, stream: int = 0) -> "Tensor | None":
        """Allocate; a refusal is tried again, as PyTorch does after it has emptied its cache."""
        if not self.active.get(device):
            self.own.append(nbytes)
            return None
        allocator = self.active[device][-1].allocator
        for _attempt in range(2):
            address = allocator.alloc(nbytes, device, stream)
            if address:
                return Tensor(allocator, address, nbytes, device, stream)
        raise TorchRefusalError(f"CUDA out of memory. Tried to allocate {nbytes} bytes.")


class Tensor:
    def __init__(
        self, allocator: CustomAllocator, address: int, nbytes: int, device: int, stream: int
    ) -> None:
        self.address = address
        weakref.finalize(self, allocator.free, address, nbytes, device, stream)


class MemPool:
    """``torch.cuda.MemPool``."""

    def __init__(self, torch: Torch, allocator: CustomAllocator) -> None:
        self.id = (0, next(torch.ids))
        self.allocator = allocator
        self.device = torch.device
        torch.pools[self.id] = self


def make_torch() -> dict[str, types.ModuleType]:
    state = Torch()
    memory = module("torch.cuda.memory", CUDAPluggableAllocator=CUDAPluggableAllocator)
    cuda = module(
        "torch.cuda",
        memory=memory,
        device=state.current_device,
        MemPool=lambda allocator: MemPool(state, allocator),
        use_mem_pool=state.use_mem_pool,
    )
    functions = module(
        "torch._C",
        _cuda_customAllocator=CustomAllocator,
        _cuda_beginAllocateToPool=state.begin,
        _cuda_endAllocateToPool=state.end,
        _cuda_releasePool=state.release,
    )
    torch = module(
        "torch",
        __version__="2.15.0+cu132",
        cuda=cuda,
        _C=functions,
        OutOfMemoryError=TorchRefusalError,
        state=state,
    )
    return {"torch": torch, "torch.cuda": cuda, "torch.cuda.memory": memory, "torch._C": functions}


# RMM


class CallbackMemoryResource:
    """``rmm.mr.CallbackMemoryResource``."""

    def __init__(
        self, allocate_func: Callable[[int, Any], int], deallocate_func: Callable[[int, int, Any], None]
    ) -> None:
        self.allocate, self.deallocate = allocate_func, deallocate_func


def make_rmm() -> dict[str, types.ModuleType]:
    own = CallbackMemoryResource(lambda nbytes, stream: 0, lambda ptr, nbytes, stream: None)
    resources: dict[int, CallbackMemoryResource] = {}
    mr = module(
        "rmm.mr",
        CallbackMemoryResource=CallbackMemoryResource,
        get_per_device_resource=lambda device: resources.get(device, own),
        set_per_device_resource=resources.__setitem__,
    )
    return {"rmm": module("rmm", mr=mr), "rmm.mr": mr}


# Numba


class NumbaPointer:
    """``numba.cuda.MemoryPointer``: its finalizer runs when it dies."""

    def __init__(
        self, context: Any, pointer: Any, size: int, owner: Any = None, finalizer: Any = None
    ) -> None:
        self.device_pointer, self.size = pointer, size
        weakref.finalize(self, finalizer)


class NumbaManager:
    """Numba's own memory manager."""

    def __init__(self, context: Any) -> None:
        self.context = context

    def memalloc(self, size: int) -> str:
        return f"{size} bytes of Numba's own"

    def get_memory_info(self) -> tuple[int, int]:
        return 1, 2

    def get_ipc_handle(self, memory: Any) -> str:
        return "a handle"


def make_numba() -> dict[str, types.ModuleType]:
    class Device:
        def __init__(self, number: int) -> None:
            self.id, self.primary_context = number, None

    driver: Any = module("driver", is_initialized=False, initialization_error=None)
    gpus = [Device(0), Device(1)]
    cuda: Any = module("numba.cuda", manager=NumbaManager, gpus=gpus)

    def set_memory_manager(manager: Any) -> None:
        assert manager(context=None).interface_version == 1
        cuda.manager = manager

    def make_context(device: int) -> Any:
        driver.is_initialized = True
        gpus[device].primary_context = context = cuda.manager(context=module("context", device=gpus[device]))
        return context

    cuda.__dict__.update(
        set_memory_manager=set_memory_manager,
        make_context=make_context,
        MemoryPointer=NumbaPointer,
        MemoryInfo=lambda free, total: (free, total),
        cudadrv=module(
            "cudadrv", driver=module("driver", NumbaCUDAMemoryManager=NumbaManager, driver=driver)
        ),
    )
    bindings = module("cuda.bindings.driver", CUdeviceptr=int)
    return {
        "numba": module("numba", cuda=cuda),
        "numba.cuda": cuda,
        "cuda": module("cuda"),
        "cuda.bindings": module("cuda.bindings"),
        "cuda.bindings.driver": bindings,
    }


# cuda.core


class CoreBuffer:
    """``cuda.core.Buffer``."""

    def __init__(self, ptr: int, size: int, mr: Any, stream: Any) -> None:
        self.handle, self.size, self.memory_resource, self.stream = ptr, size, mr, stream

    @classmethod
    def from_handle(
        cls, ptr: int, size: int, mr: Any = None, owner: Any = None, *, stream: Any = None
    ) -> "CoreBuffer":
        return cls(ptr, size, mr, stream)

    def close(self, stream: Any = None) -> None:
        self.memory_resource.deallocate(self.handle, self.size, stream=stream or self.stream)


def make_cuda_core() -> dict[str, types.ModuleType]:
    devices: dict[int, Any] = {}

    class Device:
        """``cuda.core.Device``: one object for each device and thread."""

        memory_resource: Any = "cuda.core's own"

        def __new__(cls, device_id: int) -> "Device":
            made: Device = devices.setdefault(device_id, super().__new__(cls))
            return made

        def allocate(self, size: int, *, stream: Any) -> CoreBuffer:
            buffer: CoreBuffer = self.memory_resource.allocate(size, stream=stream)
            return buffer

    core = module(
        "cuda.core", MemoryResource=type("MemoryResource", (), {}), Buffer=CoreBuffer, Device=Device
    )
    return {"cuda": module("cuda", core=core), "cuda.core": core}


# Warp


def make_warp() -> dict[str, types.ModuleType]:
    allocators: dict[str, Any] = {}
    warp = module("warp", allocators=allocators, stream=Stream(0))

    class ScopedAllocator:
        """``warp.ScopedAllocator``."""

        def __init__(self, device: str, allocator: Any) -> None:
            self.device, self.allocator = device, allocator

        def __enter__(self) -> None:
            self.saved = allocators.get(self.device)
            allocators[self.device] = self.allocator

        def __exit__(self, *_: object) -> None:
            allocators[self.device] = self.saved

    warp.__dict__.update(
        get_stream=lambda device: warp.stream,
        set_device_allocator=allocators.__setitem__,
        ScopedAllocator=ScopedAllocator,
    )
    return {"warp": warp}


def make_cupy() -> dict[str, Any]:
    return {"cupy": Cupy()}


MAKERS: dict[str, Callable[[], dict[str, Any]]] = {
    "cupy": make_cupy,
    "torch": make_torch,
    "rmm": make_rmm,
    "numba.cuda": make_numba,
    "cuda.core": make_cuda_core,
    "warp": make_warp,
}


def install(name: str) -> Any:
    """Put a stand-in in the place of a package, and return it."""
    modules = MAKERS[name]()
    sys.modules.update(modules)
    return modules[name]


__all__ = ["MAKERS", "Stream", "install"]
