"""NumPy's arrays in a pool, in every thread of the process. Each test has a process of its own: it cannot be undone."""

import pytest

from support.pools.numpy_handlers import passes, run_numpy_program

PROGRAMS = {
    "every thread, past and future": """
        go, ready, names = threading.Event(), threading.Event(), []
        def old():
            ready.set()
            go.wait(20)
            names.append(get_handler_name(np.empty(3)))
        early = threading.Thread(target=old)
        early.start()
        ready.wait(20)
        pooled.install(pool, process_wide=True)
        go.set()
        early.join()
        late = threading.Thread(target=old)
        late.start()
        late.join()
        with ThreadPoolExecutor(4) as executor:
            names += executor.map(lambda n: get_handler_name(np.empty(n)), range(100))
        async def task():
            names.append(get_handler_name(np.empty(3)))
            names.append(await asyncio.to_thread(lambda: get_handler_name(np.empty(3))))
        asyncio.run(task())
        names.append(contextvars.Context().run(lambda: get_handler_name(np.empty(3))))
        assert set(names) == {"allotment"} and len(names) == 105, names
        assert pool.stats().num_live == 0
        """,
    "arrays of before are freed, resized and read as ever": """
        before = [np.arange(n + 1) for n in (0, 1, 5, 100, 1000, 10**6, 10**7)]
        kept = list(before)
        pooled.install(pool, process_wide=True)
        live = pool.stats().num_live
        for n, a in zip((0, 1, 5, 100, 1000, 10**6, 10**7), before):
            assert a.sum() == n * (n + 1) // 2
        for a in before[::2]:
            a.resize(len(a) * 3, refcheck=False)
            a.resize(2, refcheck=False)
        del a, before, kept
        for n in range(2000):
            np.empty(n % 40)
        assert pool.stats().num_live == live == 0
        """,
    "uninstall ends serving, and what is live is freed by its pool": """
        pooled.install(pool, process_wide=True)
        ours = [np.arange(n) for n in (1, 10, 10_000, 10**6)]
        assert get_handler_name() == "allotment"
        pooled.uninstall()
        assert get_handler_name() == "default_allocator"
        live = pool.stats().num_live
        theirs = [np.arange(n) for n in (1, 10, 10_000, 10**6)]
        assert pool.stats().num_live == live == 4
        for a, b in zip(ours, theirs):
            assert (a == b).all()
        a.resize(2 * 10**6, refcheck=False)
        b.resize(2 * 10**6, refcheck=False)
        assert (a == b).all()
        assert pool.stats().num_live == 4
        del a, b
        mixed = [*ours[::2], *theirs[::2], *ours[1::2], *theirs[1::2]]
        del ours, theirs
        while mixed:
            del mixed[len(mixed) // 2]
        assert pool.stats().num_live == 0
        """,
    "one pool after another": """
        pools = [Pool("64MiB") for _ in range(3)]
        arrays = []
        for turn in range(30):
            pooled.install(pools[turn % 3], process_wide=True)
            arrays.append(np.full(1000, turn))
            pooled.uninstall()
            arrays.append(np.full(1000, turn))
        assert [p.stats().num_live for p in pools] == [10] * 3
        assert [int(a.sum()) // 1000 for a in arrays] == [turn // 2 for turn in range(60)]
        del arrays[::2]
        assert [p.stats().num_live for p in pools] == [0] * 3
        """,
    "a thousand rounds leave no reference behind": """
        def one():
            pooled.install(pool, process_wide=True)
            a = np.empty(100)
            pooled.uninstall()
        one()
        gc.collect()
        before = sys.getrefcount(pool), len(gc.get_objects())
        for _ in range(1000):
            one()
        gc.collect()
        assert sys.getrefcount(pool) == before[0]
        assert len(gc.get_objects()) < before[1] + 100
        assert pool.stats().num_live == 0
        """,
    "installing twice is an error and changes nothing": """
        pooled.install(pool, process_wide=True)
        for _ in range(2):
            try:
                pooled.install(Pool("1MiB"), process_wide=True)
            except RuntimeError as error:
                assert "uninstall() first" in str(error)
            else:
                raise AssertionError("not refused")
        a = np.empty(1000)
        assert pool.stats().num_live == 1
        pooled.uninstall()
        try:
            pooled.uninstall()
        except RuntimeError as error:
            assert "nothing to uninstall" in str(error)
        else:
            raise AssertionError("not refused")
        """,
    "a block inside counts": """
        pooled.install(pool, process_wide=True)
        inner = Pool("16MiB")
        with pooled.use(inner):
            a = np.empty(1000)
            pooled_in_thread = []
            make = lambda: pooled_in_thread.append(np.empty(1000))
            t = threading.Thread(target=contextvars.Context().run, args=(make,))
            t.start(); t.join()
        assert inner.stats().num_live == 1 and pool.stats().num_live == 1
        pooled.install(inner)
        b = np.empty(10)
        pooled.uninstall()
        c = np.empty(10)
        assert inner.stats().num_live == 2 and pool.stats().num_live == 2
        pooled.uninstall()
        d = np.empty(10)
        assert pool.stats().num_live == 2
        """,
    "device operations keep their pools": """
        import allotment
        import allotment.tf as tf
        allotment.testing.simulate_gpus("1:64MiB")
        pooled.install(pool, process_wide=True)
        with tf.device("/GPU:0"):
            a = tf.ones([1000])
            b = a + a
        assert tf.config.experimental.get_memory_info("GPU:0")["current"] == 2 * 4096
        with tf.device("/CPU:0"):
            c = tf.ones([1000])
        assert pool.stats().in_use >= 4000
        """,
    "a device can be named, and a logical device given": """
        import allotment
        import allotment.tf as tf
        allotment.testing.simulate_gpus("2:64MiB")
        info = lambda name: tf.config.experimental.get_memory_info(name)["current"]
        with pooled.use("/GPU:0"):
            a = np.empty(256, np.uint8)
        with pooled.use(tf.config.list_logical_devices("GPU")[1]):
            b = np.empty(512, np.uint8)
        assert (info("GPU:0"), info("GPU:1")) == (256, 512)
        pooled.install("GPU:1", process_wide=True)
        c = np.empty(512, np.uint8)
        assert (info("GPU:0"), info("GPU:1")) == (256, 1024)
        del a, b, c
        assert (info("GPU:0"), info("GPU:1")) == (0, 0)
        """,
    "readers that resize without the interpreter's lock": """
        import io, tempfile
        text = " ".join(map(str, range(20_000)))
        early = [np.fromstring(text, dtype=np.int64, sep=" ")]
        pooled.install(pool, process_wide=True)
        def read(_):
            return np.fromstring(text, dtype=np.int64, sep=" ")
        with ThreadPoolExecutor(4) as executor:
            arrays = early + list(executor.map(read, range(40)))
        arrays.append(np.fromiter((n for n in range(20_000)), np.int64))
        assert all((a == np.arange(20_000)).all() for a in arrays)
        del arrays, early
        assert pool.stats().num_live == 0
        """,
    "uninstalled and installed while threads work": """
        stop, errors = threading.Event(), []
        def churn(seed):
            random = np.random.default_rng(seed)
            held = []
            while not stop.is_set():
                n = int(random.integers(1, 3000))
                held.append((n, np.full(n, n)))
                if len(held) > 50:
                    n, a = held.pop(int(random.integers(50)))
                    if not (a == n).all():
                        errors.append(n)
        threads = [threading.Thread(target=churn, args=(n,)) for n in range(3)]
        for t in threads:
            t.start()
        for _ in range(300):
            pooled.install(pool, process_wide=True)
            np.empty(100)
            pooled.uninstall()
        stop.set()
        for t in threads:
            t.join()
        assert not errors
        assert pool.stats().num_live == 0
        """,
    "no memory is an error that can be caught": """
        small = Pool("16MiB")
        pooled.install(small, process_wide=True)
        for _ in range(3):
            try:
                np.zeros(10**8)
            except MemoryError as error:
                assert "Unable to allocate" in str(error)
            else:
                raise AssertionError("not refused")
            assert pooled.take_refusal().limit == 16 << 20
            assert np.ones(1000).sum() == 1000
        """,
    "null and zero bytes": """
        from support.pools.numpy_handlers import CurrentHandler
        pooled.install(pool, process_wide=True)
        handler = CurrentHandler()
        given = [handler.malloc(0), handler.calloc(0, 8), handler.realloc(None, 0)]
        assert all(given) and len(set(given)) == 3
        for size, address in enumerate(given):
            handler.free(address, size * 1000)
        handler.free(None, 0)
        handler.free(None, 5000)
        assert pool.stats().num_live == 0
        """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_process_wide(name: str) -> None:
    passes(PROGRAMS[name])


@pytest.mark.parametrize("version", ["1.26.4", "2.99.0", "3.0.0", "3.0.0.dev0"])
def test_a_numpy_that_it_was_not_tried_with_is_refused(version: str) -> None:
    passes(
        f"""
        real = np.__version__
        np.__version__ = {version!r}
        try:
            pooled.install(pool, process_wide=True)
        except RuntimeError as error:
            assert {version!r} in str(error) and "2.0" in str(error) and "use()" in str(error), error
        else:
            raise AssertionError("not refused")
        assert get_handler_name() == "default_allocator"
        with pooled.use(pool):
            assert get_handler_name() == "allotment"
        """
    )


def test_a_default_capsule_that_is_not_what_it_was_is_refused() -> None:
    done = run_numpy_program(
        """
        import ctypes
        from support.pools.numpy_handlers import CurrentHandler
        default = CurrentHandler().capsule
        rename = ctypes.pythonapi.PyCapsule_SetName
        rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
        name = b"another"
        rename(default, name)
        try:
            pooled.install(pool, process_wide=True)
        except RuntimeError as error:
            rename(default, b"mem_handler")
            print(error)
        """
    )
    assert done.returncode == 0, done.stderr
    assert "not of a known kind" in done.stdout or "cannot be replaced" in done.stdout
