//! Programs in C and C++, the examples among them, compiled and run: linked statically and dynamically, by pkg-config,
//! and under the sanitizers and the memory checker. What this machine has no tool for is left out, and said.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

/// Libraries that the static library needs.
const SYSTEM: [&str; 3] = ["-lpthread", "-ldl", "-lm"];

/// Returns whether this machine has a program; says so if not.
#[expect(clippy::print_stderr, reason = "what was left out is to be seen")]
fn has(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("left out: there is no {program} here");
    }
    there
}

/// Runs a command that must succeed; returns what it printed.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Returns the newest library that Cargo built for these tests with this extension.
fn library(extension: &str) -> PathBuf {
    let tests = env::current_exe().expect("this program has a path");
    let files = fs::read_dir(tests.parent().expect("a folder")).expect("a folder that can be read");
    let ours = files.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| {
        path.extension() == Some(OsStr::new(extension))
            && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("liballotment_capi"))
    });
    ours.max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok())
        .expect("Cargo builds the libraries before these tests")
}

/// Options of compilers: an access outside of an object, or behaviour that C does not define, ends the program.
const SANITIZERS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// The programs, with their output.
const PROGRAMS: [(&str, &str); 9] = [
    ("examples/host.c", "served 3 allocations\n"),
    ("examples/plan.c", "400 requests at their places in 800 KiB\n"),
    ("examples/source.cc", "the device has all its memory back\n"),
    ("tests/programs/arguments.c", "every argument was checked\n"),
    ("tests/programs/elastic.c", "paused and resumed\n"),
    ("tests/programs/lifetimes.cc", "everything has ended once\n"),
    ("tests/programs/options.cc", "every option has an effect\n"),
    ("tests/programs/siblings.cc", "the device has all its memory back\n"),
    ("tests/programs/thread_end.c", "a thread has used the library to its very end\n"),
];

/// Returns the compiler of a program, and its standard.
fn compiler_of(program: &str) -> (&'static str, &'static str) {
    if Path::new(program).extension() == Some(OsStr::new("cc")) {
        ("g++", "-std=c++17")
    } else {
        ("gcc", "-std=c11")
    }
}

/// Returns whether a compiler has the sanitizers of addresses and of undefined behaviour; says so if not.
#[expect(clippy::print_stderr, reason = "what was left out is to be seen")]
fn has_sanitizers(compiler: &str, folder: &Path) -> bool {
    let (source, program) = (folder.join("nothing.c"), folder.join("nothing"));
    fs::write(&source, "int main(void) { return 0; }\n").expect("a file");
    let made = Command::new(compiler).args(SANITIZERS).arg(&source).arg("-o").arg(&program).output();
    let runs = made.is_ok_and(|made| made.status.success())
        && Command::new(&program).output().is_ok_and(|output| output.status.success());
    if !runs {
        eprintln!("left out: {compiler} has no sanitizers here");
    }
    runs
}

/// Compiles a program without a warning.
fn compile(source: &str, program: &Path, link: &[&OsStr]) {
    let (compiler, standard) = compiler_of(source);
    let source = Path::new(FOLDER).join(source);
    let mut command = Command::new(compiler);
    command
        .args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-o"])
        .arg(program)
        .arg(source);
    run(command.arg("-I").arg(Path::new(FOLDER).join("include")).args(link));
}

/// Checks the log of a program with 4 allocations that are freed: a line for each event, after that of the columns.
fn check_log(log: &str) {
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some("Thread,Time,Action,Pointer,Size,Stream"));
    let events: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert!(events.iter().all(|event| event.len() == 6), "{log}");
    for action in ["allocate", "free"] {
        let pointers: HashSet<&str> =
            events.iter().filter(|event| event[2] == action).map(|event| event[3]).collect();
        assert_eq!(pointers, HashSet::from(["0x1", "0x2", "0x3", "0x4"]), "{log}");
    }
    assert_eq!(events.len(), 8, "{log}");
}

#[test]
fn the_shared_library_stays_while_a_thread_of_it_may_run() {
    if has("gcc") {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = folder.path().join("closed");
        compile("tests/programs/closed.c", &program, &[OsStr::new("-ldl"), OsStr::new("-lpthread")]);
        assert_eq!(run(Command::new(&program).arg(library("so"))), "the library stays\n");
    }
}

#[test]
fn the_programs_run_with_both_libraries_and_under_checkers_of_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = library("a");
    let mut link_static = vec![archive.as_os_str()];
    link_static.extend(SYSTEM.iter().map(OsStr::new));
    let shared = library("so");
    for (source, expected) in PROGRAMS {
        if !has(compiler_of(source).0) {
            continue;
        }
        let name = Path::new(source).file_name().expect("a name").to_string_lossy().into_owned();
        // `elastic.c` pauses a pool in it, `plan.c` writes its events to it.
        let file = folder.path().join(format!("{name}.file"));
        let program = folder.path().join(format!("{name}.static"));
        compile(source, &program, &link_static);
        assert_eq!(run(Command::new(&program).arg(&file)), expected);
        if name == "plan.c" {
            check_log(&fs::read_to_string(&file).expect("the program writes its events"));
        }
        let dynamic = folder.path().join(format!("{name}.dynamic"));
        compile(source, &dynamic, &[shared.as_os_str(), OsStr::new("-lpthread"), OsStr::new("-lm")]);
        let path = shared.parent().expect("a folder");
        assert_eq!(run(Command::new(&dynamic).arg(&file).env("LD_LIBRARY_PATH", path)), expected);
        if has_sanitizers(compiler_of(source).0, folder.path()) {
            let checked = folder.path().join(format!("{name}.sanitized"));
            let mut link = link_static.clone();
            link.extend(SANITIZERS.iter().map(OsStr::new));
            compile(source, &checked, &link);
            // Leaks are looked for below.
            assert_eq!(
                run(Command::new(&checked).arg(&file).env("ASAN_OPTIONS", "detect_leaks=0")),
                expected
            );
        }
        if has("valgrind") {
            let mut checker = Command::new("valgrind");
            checker.args(["--quiet", "--error-exitcode=99", "--leak-check=full"]);
            // The thread that trims idle pools may run at the end.
            checker.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
            assert_eq!(run(checker.arg(&program).arg(&file)), expected);
        }
    }
}

/// Returns the library of a package for Python, by its folder and the start of its name: in the folder that
/// `ALLOTMENT_SITE_PACKAGES` names, or in the environment of the Python tests. Says so if there is none.
#[expect(clippy::print_stderr, reason = "what was left out is to be seen")]
fn of_package(folder: &str, start: &str) -> Option<PathBuf> {
    let environments = Path::new(FOLDER).join("../../.venv/lib");
    let pythons = fs::read_dir(environments).into_iter().flatten().filter_map(Result::ok);
    let packages = pythons.map(|python| python.path().join("site-packages"));
    let packages = env::var_os("ALLOTMENT_SITE_PACKAGES").map(PathBuf::from).into_iter().chain(packages);
    let files = packages.filter_map(|packages| fs::read_dir(packages.join(folder)).ok()).flatten();
    let mut paths = files.filter_map(Result::ok).map(|entry| entry.path());
    let found =
        paths.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start)));
    if found.is_none() {
        eprintln!("left out: there is no {start} in {folder} of Python's packages");
    }
    found
}

/// Compiles an example with libraries of packages and runs it; returns what it printed.
fn run_with(example: &str, libraries: &[PathBuf]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("program");
    let archive = library("a");
    let mut link = vec![archive.as_os_str()];
    link.extend(libraries.iter().map(|library| library.as_os_str()));
    link.extend(SYSTEM.iter().map(OsStr::new));
    compile(example, &program, &link);
    let path = libraries[0].parent().expect("a folder");
    run(Command::new(&program).env("LD_LIBRARY_PATH", path))
}

#[test]
fn ggml_computes_in_a_pool() {
    let libraries = ["libggml-base", "libggml-cpu"].map(|name| of_package("pywhispercpp.libs", name));
    if let [Some(base), Some(cpu)] = libraries
        && has("gcc")
    {
        assert_eq!(run_with("examples/ggml.c", &[base, cpu]), "computed in 1200064 bytes\n");
    }
}

#[test]
fn memories_of_wasmtime_are_in_a_pool() {
    let folder = format!("wasmtime/linux-{}", env::consts::ARCH);
    if let Some(wasmtime) = of_package(&folder, "_libwasmtime.so").filter(|_| has("gcc")) {
        let printed = run_with("examples/wasmtime.c", &[wasmtime]);
        assert_eq!(printed, "served 3 memories, 2424832 bytes at the peak\n");
    }
}

#[test]
fn pkg_config_finds_an_installed_library() {
    if !has("pkg-config") || !has("gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (lib, include) = (folder.path().join("lib"), folder.path().join("include"));
    for made in [&lib, &include] {
        fs::create_dir(made).expect("a folder");
    }
    fs::copy(library("so"), lib.join("liballotment_capi.so")).expect("a copy");
    fs::copy(Path::new(FOLDER).join("include/allotment.h"), include.join("allotment.h")).expect("a copy");
    let template = fs::read_to_string(Path::new(FOLDER).join("allotment.pc.in")).expect("the template");
    let prefix = folder.path().to_str().expect("a path of UTF-8");
    let filled = template.replace("@PREFIX@", prefix).replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    fs::write(lib.join("allotment.pc"), filled).expect("a file");
    let flags = run(Command::new("pkg-config")
        .args(["--cflags", "--libs", "allotment"])
        .env("PKG_CONFIG_PATH", &lib));
    let program = folder.path().join("program");
    let source = Path::new(FOLDER).join("examples/host.c");
    run(Command::new("gcc").arg(source).arg("-o").arg(&program).args(flags.split_whitespace()));
    run(Command::new(&program).env("LD_LIBRARY_PATH", &lib));
}
