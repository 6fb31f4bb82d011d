#!/bin/sh
# Builds the driver of TensorFlow's allocator: build.sh PYTHON OUT.so
#
# PYTHON has tensorflow-cpu 2.21.0 installed. Its headers and library are used; TensorFlow is not imported,
# so none of the packages it depends on need to be there.
set -eu

fail() {
    echo "build.sh: $1" >&2
    exit 1
}

[ $# -eq 2 ] || fail "usage: build.sh PYTHON OUT.so"
python=$1 out=$2
version=2.21.0
source=$(dirname "$0")/bfc_driver.cc
library=libtensorflow_framework.so.2

# One line: the installed version and where the package lies.
found=$("$python" - <<'PY' 2>/dev/null
import importlib.metadata, importlib.util
print(importlib.metadata.version("tensorflow-cpu"), importlib.util.find_spec("tensorflow").submodule_search_locations[0])
PY
) || fail "$python has no tensorflow-cpu: pip install --no-deps tensorflow-cpu==$version"
[ "${found%% *}" = "$version" ] || fail "$python has tensorflow-cpu ${found%% *}, not $version"
tensorflow=${found#* }
[ -f "$tensorflow/$library" ] || fail "no $library in $tensorflow"
[ -f "$tensorflow/include/xla/tsl/framework/bfc_allocator.h" ] || fail "no bfc_allocator.h in $tensorflow/include"

mkdir -p "$(dirname "$out")"
# NDEBUG and the ABI are those of the library: both change the layout of its classes. Built beside and then
# moved, so that a test that runs meanwhile never loads half a file.
"${CXX:-c++}" -std=c++17 -O2 -w -fPIC -shared -DNDEBUG -D_GLIBCXX_USE_CXX11_ABI=1 \
    "-I$tensorflow/include" "$source" -o "$out.part" \
    "-L$tensorflow" "-l:$library" "-Wl,-rpath,$tensorflow" -Wl,--no-undefined
mv "$out.part" "$out"
