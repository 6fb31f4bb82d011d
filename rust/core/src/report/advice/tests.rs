use super::*;

#[test]
fn each_text_says_what_to_do_and_the_number() {
    let free = |allocations: &[u64], bytes| Advice {
        allocations: allocations.to_vec(),
        ..Advice::now(Action::Free, bytes)
    };
    let named = |action, targets: &[(&str, u64)]| Advice {
        targets: targets.iter().map(|&(name, bytes)| (name.to_owned(), bytes)).collect(),
        exact: action == Action::RaiseScope,
        ..Advice::now(action, 3 << 20)
    };
    let exact = |action, bytes| Advice { exact: true, ..Advice::now(action, bytes) };
    let many: Vec<u64> = (1..=11).collect();
    let texts = [
        (free(&[3], 512), "free allocation 3 (512 B)"),
        (free(&[3, 4], 2 << 20), "free allocations 3 and 4 (2 MiB)"),
        (free(&many, 2 << 20), "free allocations 1, 2, 3, 4, 5, 6, 7, 8 and 3 more (2 MiB)"),
        (
            exact(Action::RaiseLimit, 2048),
            "raise the limit to 2048 bytes (2 KiB), the smallest that serves it",
        ),
        (
            Advice { needs_grant: true, ..Advice::now(Action::RaiseLimit, 512) },
            "raise the limit to 512 bytes, provided that the source grants it",
        ),
        (Advice::next_run(Action::RaiseLimit, 512), "start the program again with a limit of 512 bytes"),
        (exact(Action::AskFor, 256), "ask for at most 256 bytes"),
        (Advice::now(Action::AskFor, 256), "ask for 256 bytes or less"),
        (Advice::now(Action::Trim, 1 << 20), "call trim(), which hands back 1 MiB"),
        (
            named(Action::Trim, &[("a", 1 << 20), ("b", 2 << 20)]),
            "call trim() of pools \"a\" and \"b\" on the same memory, which hands back 3 MiB",
        ),
        (
            named(Action::RaiseScope, &[("step", 3 << 20)]),
            "raise the limit of scope \"step\" to 3145728 bytes (3 MiB), the smallest that serves it",
        ),
        (
            named(Action::RaiseScope, &[("a", 3 << 20), ("a/b", 512)]),
            "raise the limit of scope \"a\" to 3145728 bytes (3 MiB) and scope \"a/b\" to 512 bytes, the smallest that \
             serves it",
        ),
        (Advice::next_run(Action::Policy, 0), "start the program again with policy \"tight\""),
    ];
    for (advice, text) in texts {
        assert_eq!(advice.to_string(), text);
    }
}
