"""``allotment run``: which programs run, what they start, how they end, and what the command says.

Longer than 300 lines: one rule after the other of one command, with the same helpers.
"""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from allotment.cli import host
from allotment.cli.command import BadInput
from allotment.cli.host import LIBRARY, HostOptions, run_host_program
from support import child
from support.command import allotment, complaint
from support.host_programs import PROGRAMS, Compile, python, run


def test_programs_that_the_program_starts_have_the_same_limit_each() -> None:
    program = (
        "import numpy as np\ntry: np.ones(1 << 25)\nexcept MemoryError: print('refused')\nnp.ones(1 << 23)"
    )
    done = run(
        "sh", "-c", f'"{sys.executable}" -c "{program}" && "{sys.executable}" -c "{program}"', limit="128MiB"
    )
    assert (done.returncode, done.stdout) == (0, "refused\nrefused\n"), done.stderr
    assert done.stderr.count("a request of 256 MiB was refused") == 2


def test_a_forked_child_frees_what_it_inherited_and_counts_it() -> None:
    program = """
import os
import numpy as np
kept = np.full(5 << 20, 3.0)  # 40 MiB
child = os.fork()
if child == 0:
    try:
        np.ones(4 << 20)
        os._exit(1)
    except MemoryError:
        pass
    del kept
    more = np.ones(6 << 20)
    os._exit(0 if more.all() else 2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert (kept == 3).all()
"""
    done = python(program, limit="64MiB")
    assert done.returncode == 0, done.stderr
    # What the child wrote to is its own: its refusal, and its 48 MiB beside the parent's 40.
    first, second = [line for line in done.stderr.splitlines() if ": at most " in line]
    assert "a request of 32 MiB was refused" in first
    assert "refused" not in second


def test_many_threads_fork_while_others_allocate() -> None:
    program = """
import os, threading
import numpy as np
def work():
    for size in range(60):
        assert (np.full(20_000 + size * 500, 2.0) == 2).all()
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        os._exit(0 if (np.full(100_000, 1.0) == 1).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
for thread in threads: thread.join()
"""
    done = python(program)
    assert done.returncode == 0, done.stderr


def test_other_programs_sort_compile_and_end_as_ever(tmp_path: Path) -> None:
    text = tmp_path / "numbers"
    text.write_text("".join(f"{number * 7919 % 200_003}\n" for number in range(200_000)))
    done = run("sort", "-n", text)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == sorted(text.read_text().split(), key=int)
    assert re.search(r"allotment: sort \(\d+\): at most", done.stderr)
    program = tmp_path / "other_callers"
    done = run("cc", "-O2", "-w", "-pthread", "-o", program, PROGRAMS / "other_callers.c")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert subprocess.run([program], capture_output=True, check=True).stdout == b"whole\n"


@pytest.mark.parametrize(("end", "status"), [("exit 7", 7), ("kill -9 $$", 137), ("exec true", 0)])
def test_the_exit_status_is_the_programs(end: str, status: int) -> None:
    assert run("sh", "-c", end).returncode == status


def started(program: str) -> "subprocess.Popen[str]":
    """Start a program of Python under the command, in a process group of their own."""
    command = [
        sys.executable,
        "-m",
        "allotment",
        "run",
        "--limit",
        "1GiB",
        "--",
        sys.executable,
        "-c",
        program,
    ]
    return subprocess.Popen(
        command,
        env=child.environment(),
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_an_interrupt_is_the_programs_and_the_figures_are_printed() -> None:
    program = "import numpy as np, time\na = np.ones(1 << 20)\n"
    program += (
        "try: print('ready', flush=True); time.sleep(60)\nexcept KeyboardInterrupt: raise SystemExit(5)"
    )
    with started(program) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 5
    assert "at most" in errors


def test_the_program_ends_with_the_command() -> None:
    program = "import numpy as np, signal, time\na = np.ones(1 << 20)\nprint('ready', flush=True)\n"
    program += "signal.signal(signal.SIGTERM, lambda *_: exit(6))\nprint('set', flush=True)\ntime.sleep(60)"
    with started(program) as process:
        assert process.stdout
        assert [process.stdout.readline() for _ in range(2)] == ["ready\n", "set\n"]
        process.terminate()
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 6
    assert "at most" in errors


def test_without_a_temporary_folder_nothing_is_run() -> None:
    environment = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), "/no/such/folder")
    program = "import tempfile; tempfile._candidate_tempdir_list = lambda: ['/no/such/folder']; "
    program += (
        "from allotment.cli import main; raise SystemExit(main(['run', '--limit', '1GiB', '--', 'true']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=child.environment() | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "no temporary folder can be made (TMPDIR names another place)" in complaint(done)


def test_a_quiet_run_and_one_without_large_blocks() -> None:
    done = run("true")
    assert re.fullmatch("allotment: no process had a block of 128 KiB or more\n", done.stderr)
    assert run("true", options=["--quiet"]).stderr == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--limit", "1000KiB", "--", "true"], "must be at least 1048576 bytes"),
        (["--limit", "70TiB", "--", "true"], "must be at most 70368744177664 bytes"),
        (["--limit", "much", "--", "true"], "size 'much': not a size"),
        (["--limit", "1GiB", "--threshold", "1KiB", "--", "true"], "must be at least 4096 bytes"),
        (["--limit", "2MiB", "--threshold", "4MiB", "--", "true"], "no large block would fit"),
        (
            ["--limit", "1GiB", "--", "no-such-program"],
            "no-such-program: cannot be run: No such file or directory",
        ),
        (
            ["--limit", "1GiB", "-o", "/no/such/folder/t", "--", "true"],
            "-o /no/such/folder/t: cannot be written",
        ),
        (["--limit", "1GiB", "--timeline", "/", "--", "true"], "--timeline /: is not a regular file"),
        (["--", "true"], "Missing option '--limit'"),
        (["--limit", "1GiB"], "Missing argument"),
    ],
)
def test_bad_input_is_told_in_a_line(arguments: list[str], text: str) -> None:
    assert text in complaint(allotment("run", *arguments))


@pytest.mark.parametrize("command", [("run", "--quiet", "--limit", "64MiB"), ("record",)])
def test_a_script_without_a_first_line_for_the_system_is_run_by_the_shell(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    script = tmp_path / "own-script"
    script.write_text('echo "$1"; exit 7\n')
    script.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for name in (str(script), "./own-script", "own-script"):
        # As a program that takes its place (`execvp`) does.
        for words in (["env", name, "a b"], [sys.executable, "-m", "allotment", *command, "--", name, "a b"]):
            done = subprocess.run(
                words, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
            )
            assert (done.returncode, done.stdout) == (7, "a b\n"), done.stderr
    # Not what is no text.
    script.write_bytes(b"\0\1\2")
    assert "cannot be run: Exec format error" in complaint(allotment(*command, "--", script))


def test_a_static_program_is_not_run(compiled: Compile, tmp_path: Path) -> None:
    program = compiled(PROGRAMS / "other_callers.c", "-static")
    line = complaint(run(program))
    assert line.endswith(
        "it is linked statically, so that the system loads no library into it: nothing was run"
    )
    script = tmp_path / "own-script"
    script.write_text(f"#!{program}\n")
    script.chmod(0o755)
    assert "linked statically" in complaint(run(script))


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a program of another user")
def test_a_program_with_the_rights_of_another_user_is_not_run(compiled: Compile, tmp_path: Path) -> None:
    program = tmp_path / "other"
    program.write_bytes(compiled(PROGRAMS / "other_callers.c").read_bytes())
    os.chown(program, 12345, 12345)
    program.chmod(stat.S_ISUID | 0o755)
    assert "with the rights of another user or group" in complaint(run(program))


def test_a_program_that_the_library_was_not_loaded_into_is_told(
    compiled: Compile, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # One that looked as if it would be.
    monkeypatch.setattr(host, "problem_of", lambda _: None)
    program = compiled(PROGRAMS / "other_callers.c", "-static")
    outcome = run_host_program([str(program)], HostOptions(1 << 30))
    assert outcome.status == 2
    out, errors = capfd.readouterr()
    assert out == "whole\n"
    assert "the library was not loaded into it, so that its memory was neither limited nor recorded" in errors


def test_without_the_library_there_is_a_line_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "LIBRARY", "/no/such/library.so")
    with pytest.raises(BadInput, match="install the wheel, or run 'make develop'"):
        run_host_program(["true"], HostOptions(1 << 30))


def test_the_library_takes_the_place_of_memory_functions_and_of_nothing_else() -> None:
    names = subprocess.run(
        ["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True
    ).stdout
    functions = (
        "malloc calloc realloc reallocarray free free_sized free_aligned_sized memalign aligned_alloc "
    )
    functions += "posix_memalign valloc pvalloc malloc_usable_size malloc_trim"
    assert sorted(line.split()[-1] for line in names.splitlines()) == sorted(functions.split())


def test_another_library_that_is_loaded_first_stays() -> None:
    program = "import os; print(os.environ['LD_PRELOAD'])"
    environment = {"LD_PRELOAD": "libm.so.6"}
    done = allotment("run", "--limit", "1GiB", "--", sys.executable, "-c", program, environment=environment)
    assert done.stdout == f"{LIBRARY}:libm.so.6\n"


def test_a_run_within_a_run_has_its_own_limit() -> None:
    inner = json.dumps("import numpy as np; np.ones(1 << 23)")
    command = f"{sys.executable} -m allotment run --limit 32MiB --quiet -- {sys.executable} -c {inner}"
    done = run("sh", "-c", command, limit="1GiB")
    assert done.returncode == 1
    assert "limit                32 MiB" in done.stderr


def test_a_standard_error_without_a_reader_does_not_end_the_program() -> None:
    program = "import numpy as np\ntry: np.ones(1 << 24)\nexcept MemoryError: print('refused', flush=True)"
    command = [
        sys.executable,
        "-m",
        "allotment",
        "run",
        "--limit",
        "64MiB",
        "--quiet",
        "--",
        sys.executable,
        "-c",
    ]
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*command, f"import signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n{program}"],
            env=child.environment(),
            stdout=subprocess.PIPE,
            stderr=writer,
            text=True,
            check=False,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stdout) == (0, "refused\n")
