"""``allotment run``: large blocks of host memory under a limit, their content and their memory.

Longer than 300 lines: one rule after the other of one command, with the same helpers.
"""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import allotment
from support.host_programs import PROGRAMS, Compile, python, run

RESIDENT = """
def resident():  # MiB
    with open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("VmRSS")).split()[1]) / 1024
"""


def test_a_program_above_its_limit_ends_in_a_memory_error_and_a_report() -> None:
    done = python("import numpy as np\nkept = []\nwhile True: kept.append(np.ones(1 << 21))")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "MemoryError: Unable to allocate 16.0 MiB for an array" in done.stderr
    assert re.search(r"allotment: python\S* \(\d+\): out of memory: asked for 16 MiB", done.stderr)
    assert "limit               256 MiB  268435456 bytes, set by --limit" in done.stderr
    assert "verdict        full: what is in use and the request together are above the limit" in done.stderr
    summary = re.fullmatch(
        r"allotment: python\S* \(\d+\): at most ([\d.]+) MiB of 256 MiB at a time, \d+ large blocks in all; "
        r"a request of 16 MiB was refused",
        done.stderr.splitlines()[-1],
    )
    assert summary
    assert 240 < float(summary[1]) <= 256


def test_a_program_that_frees_something_goes_on_after_a_refusal() -> None:
    program = """
import numpy as np
refused = 0
kept = []
for _ in range(60):
    try:
        kept.append(np.full(1 << 20, 7.0))
    except MemoryError:
        refused += 1
        del kept[::2]
assert all((one == 7).all() for one in kept)
print(refused)
"""
    done = python(program, limit="64MiB")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1
    assert f"{done.stdout.strip()} requests were refused, the first of 8 MiB" in done.stderr
    # The first refusal in full, nine later ones in a line each.
    assert done.stderr.count("verdict") == 1
    assert done.stderr.count("out of memory again: asked for 8 MiB") == min(int(done.stdout) - 1, 9)


def test_the_limit_is_used_up_to_its_last_page_whatever_the_order_of_frees() -> None:
    # Every second block goes, and then one of all that is free: no arrangement of blocks that stay forbids it.
    program = """
import numpy as np
kept = [np.ones(1 << 17) for _ in range(56)]
del kept[::2]
np.ones(28 << 17)
"""
    done = python(program, limit="64MiB")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("limit", "options", "arguments"),
    [
        ("1GiB", ["--threshold", "16KiB"], ["1", "4", "1200", "4000000", "4"]),
        ("24MiB", ["--threshold", "64KiB", "--keep", "0"], ["2", "3", "1500", "4000000", "4"]),
        ("300MiB", ["--threshold", "4KiB", "--keep", "1MiB"], ["3", "2", "1500", "1000000", "6"]),
    ],
)
def test_random_calls_of_threads_and_forked_children_keep_all_content(
    compiled: Compile, tmp_path: Path, limit: str, options: list[str], arguments: list[str]
) -> None:
    program = compiled(PROGRAMS / "random_blocks.c")
    done = run(program, *arguments, limit=limit, options=[*options, "-o", str(tmp_path / "t.npz")])
    assert done.returncode == 0, done.stderr
    blocks, refused = map(int, re.findall(r"\d+", done.stdout))
    assert blocks > 1000
    assert (refused > 0) == (limit == "24MiB")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_many_random_calls_keep_all_content(compiled: Compile, seed: int) -> None:
    program = compiled(PROGRAMS / "random_blocks.c")
    limit = ["16MiB", "40MiB", "300MiB", "2GiB"][seed % 4]
    options = [
        "--threshold",
        ["4KiB", "32KiB", "128KiB"][seed % 3],
        "--keep",
        ["0", "2MiB", "64MiB"][seed % 3],
    ]
    arguments = [str(seed), str(1 + seed % 7), "4000", "4000000", "6"]
    done = run(program, *arguments, limit=limit, options=options)
    assert done.returncode == 0, done.stderr


def test_blocks_of_the_c_library_of_early_code_and_of_threads_that_end(compiled: Compile) -> None:
    done = run(compiled(PROGRAMS / "other_callers.c"))
    assert (done.returncode, done.stdout) == (0, "whole\n"), done.stderr


def test_a_block_that_is_freed_twice_ends_the_program_as_in_the_c_library() -> None:
    functions = "import ctypes; c = ctypes.CDLL(None); c.malloc.restype = pointer = ctypes.c_void_p"
    done = python(f"{functions}; p = pointer(c.malloc(1 << 20)); c.free(p); c.free(p)")
    assert done.returncode == 128 + signal.SIGABRT
    assert re.search(r"free\(\): 0x[0-9a-f]+ is not the start of an allocated block", done.stderr)


def test_freed_memory_goes_back_to_the_system() -> None:
    program = (
        RESIDENT
        + """
import ctypes
import numpy as np
before = resident()
kept = [np.ones(1 << 22) for _ in range(8)]
assert resident() > before + 255
del kept
print(int(resident() - before))
ctypes.CDLL(None).malloc_trim(0)
print(int(resident() - before))
"""
    )
    done = python(program, limit="1GiB")
    assert done.returncode == 0, done.stderr
    after_frees, after_trim = map(int, done.stdout.split())
    assert 32 < after_frees <= 68  # --keep is 64 MiB
    assert after_trim < 6
    done = python(program, limit="1GiB", options=["--keep", "0"])
    assert int(done.stdout.split()[0]) < 6


def test_zeros_take_no_memory_before_they_are_written_also_where_other_blocks_were() -> None:
    program = (
        RESIDENT
        + """
import numpy as np
before = resident()
np.ones(1 << 22)  # 32 MiB of pages that stay, and must be cleared
zeros = np.zeros(1 << 25)
assert resident() < before + 40, resident() - before
assert not zeros.any()
"""
    )
    done = python(program, limit="1GiB")
    assert done.returncode == 0, done.stderr


def test_a_block_that_grows_is_moved_without_a_second_copy() -> None:
    program = (
        RESIDENT
        + """
import ctypes, resource
c = ctypes.CDLL(None)
c.malloc.restype = c.realloc.restype = ctypes.c_void_p
c.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
size = 160 << 20
block = c.malloc(size)
ctypes.memset(block, 5, size)
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
wall = c.malloc(1 << 20)  # so that the block cannot grow where it is
for step in range(4):
    block = c.realloc(block, size + (step + 1 << 20))
    assert ctypes.c_ubyte.from_address(block + size - 1).value == 5
print(most, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
    )
    done = python(program, limit="1GiB")
    assert done.returncode == 0, done.stderr
    before, after = map(float, done.stdout.split())
    assert after < before + 20


def test_a_block_may_grow_to_the_limit_and_the_limit_holds_afterwards() -> None:
    program = """
import ctypes
c = ctypes.CDLL(None)
c.malloc.restype = c.realloc.restype = ctypes.c_void_p
c.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
mib = 1 << 20
block, wall = c.malloc(150 * mib), c.malloc(mib)
ctypes.memset(block, 5, 150 * mib)
for size in (180, 210, 230):  # two of them are above the limit together
    block = c.realloc(block, size * mib)
    assert ctypes.c_ubyte.from_address(block + 150 * mib - 1).value == 5
assert c.realloc(block, 256 * mib) is None
assert ctypes.c_ubyte.from_address(block).value == 5
assert c.malloc(30 * mib) is None
assert c.malloc(15 * mib) is not None
"""
    done = python(program)
    assert done.returncode == 0, done.stderr
    assert "at most 2" in done.stderr.splitlines()[-1]
    assert "2 requests were refused, the first of 256 MiB" in done.stderr


#: Sizes are in MiB.
REALLOC = """
import ctypes
c = ctypes.CDLL(None)
c.malloc.restype = c.realloc.restype = ctypes.c_void_p
c.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
mib = 1 << 20
"""


def test_a_block_moves_whole_where_the_kernel_fails_to_move_its_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "old_mremap.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, PROGRAMS / "old_mremap.c"], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    program = (
        REALLOC
        + """
sizes = [20 * mib + 5, 30 * mib, 45 * mib - 3]
blocks = [c.malloc(sizes[0]), c.malloc(sizes[0])]  # each is in the other one's way
places = set(blocks)
for size, larger in zip(sizes, sizes[1:]):
    for one in (0, 1):
        ctypes.memset(blocks[one], size % 251, size)
        blocks[one] = c.realloc(blocks[one], larger)
        places.add(blocks[one])
        assert ctypes.string_at(blocks[one], size) == bytes([size % 251]) * size
assert len(places) > 4, places
"""
    )
    done = python(program)
    assert done.returncode == 0, done.stderr


def test_a_small_block_of_as_many_usable_bytes_as_a_large_one_grows_within_the_limit() -> None:
    program = (
        REALLOC
        + """
block = c.malloc((128 << 10) - 1)
assert c.malloc_usable_size(ctypes.c_void_p(block)) >= 128 << 10
ctypes.memset(block, 5, 1000)
assert c.realloc(block, 300 * mib) is None
block = c.realloc(block, 50 * mib)
assert ctypes.string_at(block, 1000) == bytes([5]) * 1000
assert c.malloc(60 * mib) is None
"""
    )
    done = python(program, limit="100MiB")
    assert done.returncode == 0, done.stderr
    assert "2 requests were refused, the first of 300 MiB" in done.stderr


def test_a_freed_block_that_is_resized_ends_the_program_and_realloc_is_named() -> None:
    done = python(REALLOC + "p = c.malloc(mib); c.free(ctypes.c_void_p(p)); c.realloc(p, 2 * mib)")
    assert done.returncode == 128 + signal.SIGABRT
    assert re.search(r"realloc\(\): 0x[0-9a-f]+ is not the start of an allocated block", done.stderr)


def test_sizes_above_all_limits_take_few_lines_and_leave_room_for_the_first_report() -> None:
    program = (
        REALLOC
        + """
for _ in range(50):
    assert c.malloc(ctypes.c_size_t(-5000)) is None
    assert c.malloc(ctypes.c_size_t(300 * mib)) is None
"""
    )
    done = python(program)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("allotment: ")]
    assert sum("out of memory" in line for line in lines) == 10
    assert len(lines) == 10 + 10 + 1, done.stderr
    assert done.stderr.count("verdict") == 1
    assert "100 requests were refused" in lines[-1]


@pytest.mark.parametrize("call", ["calloc({count}, {size})", "reallocarray(None, {count}, {size})"])
def test_a_product_above_all_numbers_is_refused_and_told_as_what_it_is(tmp_path: Path, call: str) -> None:
    call = call.format(count="ctypes.c_size_t(1 << 40)", size="ctypes.c_size_t(1 << 30)")
    done = allotment(
        "run",
        "--limit",
        "256MiB",
        "--timeline",
        tmp_path / "t.csv",
        "--",
        sys.executable,
        "-c",
        REALLOC
        + f"""
c.calloc.restype = c.reallocarray.restype = ctypes.c_void_p
ctypes.set_errno(0)
assert c.{call} is None
""",
    )
    assert done.returncode == 0, done.stderr
    assert (
        "cannot allocate 1099511627776 times 1073741824 bytes: the largest request is 9223372036854775552 bytes\n"
        in done.stderr
    )
    assert "a request of 18446744073709551615 bytes or more was refused" in done.stderr
    assert (tmp_path / "t.csv").read_text().endswith(f",{(1 << 63) - 1}\n")
