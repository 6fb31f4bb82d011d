"""Check that `THIRD-PARTY-LICENSES.txt` has the licences of everything that the compiled module contains.

That is every crate it links on Linux, without procedural macros and build scripts, and Rust's standard library.
`--write` writes the file after a change of dependencies.
"""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
FILE = ROOT / "THIRD-PARTY-LICENSES.txt"
#: The crate of the module, and the platform of the wheel.
MODULE = "allotment-python"
PLATFORM = "x86_64-unknown-linux-gnu"
RULE = "-" * 80
#: Files of a crate that hold licences and notices.
PREFIXES = ("license", "licence", "copying", "copyright", "notice")


def metadata() -> dict[str, Any]:
    """Return what Cargo knows of the workspace and of all its dependencies."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", PLATFORM]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    known: dict[str, Any] = json.loads(text)
    return known


def linked(known: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the packages of others that the module links, sorted by name."""
    packages = {package["id"]: package for package in known["packages"]}
    nodes = {node["id"]: node for node in known["resolve"]["nodes"]}
    found: set[str] = set()
    pending = [key for key, package in packages.items() if package["name"] == MODULE]
    while pending:
        for dependency in nodes[pending.pop()]["deps"]:
            key = dependency["pkg"]
            is_linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            is_macro = any("proc-macro" in target["kind"] for target in packages[key]["targets"])
            if is_linked and not is_macro and key not in found:
                found.add(key)
                pending.append(key)
    others = (packages[key] for key in found if packages[key]["source"] is not None)
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def texts_of(package: dict[str, Any]) -> list[str]:
    """Return the licences and notices in a crate's folder; at least one must be there."""
    folder = Path(package["manifest_path"]).parent
    files = (path for path in sorted(folder.iterdir()) if path.name.lower().startswith(PREFIXES))
    texts = [path.read_text(encoding="utf-8").strip() for path in files if path.is_file()]
    if not texts:
        raise SystemExit(f"{package['name']} has no licence in {folder}")
    return texts


def rendered() -> str:
    """Return the file: the crates with their licences, then each text once, with the crates that it is of."""
    packages = linked(metadata())
    lines = [
        "The compiled module of allotment contains the software below, beside its own, which is under Apache-2.0.",
        "",
        "Rust's standard library: MIT OR Apache-2.0, copyright The Rust Project Contributors",
    ]
    crates_of: dict[str, list[str]] = defaultdict(list)
    for package in packages:
        name = f"{package['name']} {package['version']}"
        lines.append(f"{name}: {package['license']}, {package['repository']}")
        for text in texts_of(package):
            crates_of[text].append(name)
    for text, crates in crates_of.items():
        lines += ["", RULE, *crates, RULE, "", text]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Check the file, or write it; the exit status is 1 if it is not up to date."""
    text = rendered()
    if "--write" in arguments:
        FILE.write_text(text)
    current = FILE.read_text() if FILE.exists() else ""
    print("licences are complete" if current == text else f"{FILE.name} is stale: run {sys.argv[0]} --write")
    return int(current != text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
