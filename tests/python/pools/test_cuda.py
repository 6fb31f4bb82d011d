"""Pools over CUDA memory, with a driver that stands in for NVIDIA's."""

import pytest

from support.cuda import check, run_on_stand_in


@pytest.mark.parametrize("source", ["cuda:0", "cuda-vmm:0"])
def test_a_pool_takes_device_memory_and_gives_it_back(source: str) -> None:
    check(
        run_on_stand_in(
            f"""
            import allotment, gc
            pool = allotment.Pool("64MiB", source={source!r})
            assert outstanding() == {{}}
            parts = [pool.allocate("2MiB") for _ in range(8)]
            assert pool.stats().reserved == outstanding()["bytes"]
            try:
                memoryview(parts[0])
            except BufferError as error:
                assert "not known to be memory of this process" in str(error), error
            else:
                raise AssertionError("there is no such memory here")
            for part in parts:
                part.free()
            grows_in_place = pool.stats().num_regions == 1
            assert grows_in_place == ({source!r} == "cuda-vmm:0"), pool.stats()
            assert pool.trim() > 0
            assert outstanding().get("bytes", 0) == 0
            held = pool.allocate(1000)
            del pool, parts, part
            assert outstanding()["bytes"] > 0
            del held
            gc.collect()
            assert outstanding() == {{}}, outstanding()
            """
        )
    )


def test_refusals_name_the_limit_or_the_device() -> None:
    check(
        run_on_stand_in(
            """
            import allotment
            pool = allotment.Pool("1GiB", source="cuda:1")
            held = pool.allocate("20MiB")
            for nbytes, verdict in (("40MiB", "source"), ("2GiB", "limit")):
                try:
                    pool.allocate(nbytes)
                except allotment.OutOfMemoryError as error:
                    assert error.verdict == verdict, error
                else:
                    raise AssertionError(nbytes)
            """,
            ALLOTMENT_STAND_IN_DEVICES="2",
            ALLOTMENT_STAND_IN_MEMORY=str(48 << 20),
        )
    )


def test_what_is_no_device_is_an_error() -> None:
    check(
        run_on_stand_in(
            """
            import allotment
            for source, kind, text in (
                ("cuda:1", ValueError, "there is no CUDA device 1: the driver lists one, 0"),
                ("cuda-vmm:1", ValueError, "there is no CUDA device 1: the driver lists one, 0"),
                ("cuda-vmm:0", ValueError, "CUDA device 0 has no virtual memory management"),
                ("cuda:", ValueError, "'' is not the index of a CUDA device, such as 0 in 'cuda:0'"),
                ("cuda:-1", ValueError, "'-1' is not the index of a CUDA device"),
                ("cuda:+1", ValueError, "'+1' is not the index of a CUDA device"),
                ("cuda:99999999999", ValueError, "is not the index of a CUDA device"),
                ("cuda", ValueError, "source \\"cuda\\" is not known: it is 'host', 'address-space', 'cuda:0'"),
                ("gpu:0", ValueError, "is not known"),
            ):
                try:
                    allotment.Pool("1MiB", source=source)
                except Exception as error:
                    assert type(error) is kind and text in str(error), (source, error)
                else:
                    raise AssertionError(source)
            assert outstanding() == {}
            """,
            ALLOTMENT_STAND_IN_VIRTUAL_MEMORY="0",
        )
    )


@pytest.mark.parametrize(
    ("driver", "text"),
    [
        ("/nowhere/libcuda.so.1", "the CUDA driver was not found: /nowhere/libcuda.so.1 could not be opened"),
        ("libc.so.6", "libc.so.6 is not a CUDA driver that can be used: it lacks cuInit"),
    ],
)
def test_a_driver_that_is_not_there_is_named(driver: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import allotment

    monkeypatch.setenv("ALLOTMENT_CUDA_DRIVER", driver)
    with pytest.raises(RuntimeError, match=text):
        allotment.Pool("1MiB", source="cuda:0")


@pytest.mark.parametrize("source", ["cuda:0", "cuda-vmm:0"])
def test_every_call_of_the_driver_fails_in_turn(source: str) -> None:
    check(
        run_on_stand_in(
            f"""
            import allotment, gc

            def play():
                try:
                    pool = allotment.Pool("48MiB", source={source!r}, collect_garbage=False)
                except RuntimeError as error:
                    return [str(error)]
                texts = []
                for nbytes in ("1MiB", "3MiB", "9MiB") * 2:
                    try:
                        pool.free(pool.malloc(nbytes))
                    except allotment.OutOfMemoryError as error:
                        texts.append(str(error))
                    pool.trim()
                return texts

            before = calls()
            assert play() == []
            for nth in range(1, calls() - before + 1):
                fail_at(nth)
                texts = play()
                call = failed().decode()
                fail_at(0)
                assert outstanding() == {{}}, (nth, call, outstanding())
                wanted = call + " failed: CUDA_ERROR_UNKNOWN (999), unknown error"
                assert len(texts) < 2 and all(wanted in text for text in texts), (nth, call, texts)
            """
        )
    )


def test_a_forked_child_gets_a_clear_error() -> None:
    check(
        run_on_stand_in(
            """
            import os, warnings
            import allotment
            warnings.simplefilter("ignore", DeprecationWarning)
            pool = allotment.Pool("16MiB", source="cuda:0")
            held = pool.allocate("1MiB")
            if (child := os.fork()) == 0:
                told = 0
                for attempt in (lambda: pool.allocate(1), lambda: allotment.Pool("1MiB", source="cuda:0")):
                    try:
                        attempt()
                    except RuntimeError as error:
                        told += "fork" in str(error)
                del held, pool
                os._exit(told)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
            held.free()
            """
        )
    )
