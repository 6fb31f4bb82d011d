"""The end of the interpreter, and forks, with NumPy's arrays in a pool."""

import pytest

from support.pools.numpy_handlers import passes, run_numpy_program

ENDS = {
    "alive at exit": ("a = np.ones(1000)", 0),
    "large and alive at exit": ("a = np.ones(10**7)", 0),
    "in a cycle": ("a = [np.ones(1000)]; a.append(a); del a", 0),
    "in a cycle, collector off": ("gc.disable(); a = [np.ones(1000)]; a.append(a); del a", 0),
    "pool deleted first": ("a = np.ones(1000); del pool; a[:] = 2", 0),
    "pool closed first": ("a = np.ones(1000); pool.close()", 0),
    "uninstalled, alive": ("a = np.ones(1000); pooled.uninstall(); b = np.ones(1000)", 0),
    "held by a daemon thread": (
        """
def hold(install):
    if install: pooled.install(pool)
    a = np.ones(1000)
    time.sleep(60)
threading.Thread(target=contextvars.Context().run, args=(hold, SCOPED), daemon=True).start()
time.sleep(0.05)
""",
        0,
    ),
    "a daemon thread makes arrays": (
        """
def churn(install):
    if install: pooled.install(pool)
    while True:
        a = [np.ones(1000) for _ in range(10)]
threading.Thread(target=contextvars.Context().run, args=(churn, SCOPED), daemon=True).start()
time.sleep(0.05)
""",
        0,
    ),
    "made in atexit": ("import atexit; atexit.register(lambda: np.ones(1000))", 0),
    "made in a finaliser": (
        """
class Late:
    def __del__(self): self.a = np.ones(1000); keep.append(self.a)
keep = []
late = Late()
""",
        0,
    ),
    "kept by the module": ("np.mine = np.ones(1000); sys.mine = np.ones(10)", 0),
    "sys.exit": ("a = np.ones(1000); sys.exit(3)", 3),
    "os._exit": ("a = np.ones(1000); os._exit(0)", 0),
    "uncaught exception": ("a = np.ones(1000); raise SystemError('mine')", 1),
}

INSTALLS = {
    "scoped": "SCOPED = True\npooled.install(pool)\n",
    "process": "SCOPED = False\npooled.install(pool, True)\n",
}


def check(install: str, name: str) -> None:
    program, status = ENDS[name]
    done = run_numpy_program(INSTALLS[install] + program)
    errors = done.stderr.strip().splitlines()
    if name == "uncaught exception":
        assert errors[-1] == "SystemError: mine"
        assert len(errors) < 6
    else:
        assert errors == []
    assert (done.returncode, done.stdout) == (status, "")


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("install", INSTALLS)
def test_the_status_is_the_programs_own_and_nothing_is_said(install: str, name: str) -> None:
    check(install, name)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("install", INSTALLS)
def test_two_hundred_times(install: str, name: str) -> None:
    for _ in range(200):
        check(install, name)


IN_CHILD = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
before = np.arange(1000)
INSTALL
parents = [np.arange(n) for n in (10, 100_000)]
def churn():
    if SCOPED: pooled.install(pool)
    while not stop.is_set():
        np.empty(1000)
stop = threading.Event()
thread = threading.Thread(target=contextvars.Context().run, args=(churn,))
thread.start()
for _ in range(10):
    pid = os.fork()
    if pid == 0:
        assert parents[1].sum() == 99_999 * 50_000
        new = [np.arange(n) for n in (10, 100_000)]
        assert (new[1] + parents[1] == 2 * new[1]).all()
        assert not np.zeros(10**6).any()
        for a in (*new, *parents, before):
            a.resize(200_000, refcheck=False)
            assert a[9] == 9 and a[199_999] == 0
        new = np.fromiter((n for n in range(1000)), np.int64)
        del new, a
        parents.clear()
        own = Pool("16MiB")
        with pooled.use(own):
            mine = np.ones(100)
            assert own.stats().num_live == 1
        del mine
        assert own.stats().num_live == 0
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
stop.set()
thread.join()
assert parents[0].sum() == 45
del parents
assert pool.stats().num_live == 0
"""


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("install", INSTALLS)
def test_a_forked_child_has_numpys_own_memory(install: str) -> None:
    passes(IN_CHILD.replace("INSTALL", INSTALLS[install]))


def test_a_forked_child_ends_by_itself() -> None:
    passes(
        """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        pooled.install(pool, process_wide=True)
        a = np.ones(10**6)
        pid = os.fork()
        if pid == 0:
            b = np.ones(10**6)
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        assert a.all()
        """
    )


def test_worker_processes_compute_with_numpys_own_memory() -> None:
    passes(
        """
        import multiprocessing, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        pooled.install(pool, process_wide=True)
        base = np.arange(1000)
        def work(n):
            return (base * n).sum()
        with multiprocessing.get_context("fork").Pool(2) as workers:
            assert workers.map(work, range(100)) == [499_500 * n for n in range(100)]
        """
    )
