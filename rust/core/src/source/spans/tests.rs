use proptest::prelude::*;

use super::*;

proptest! {
    /// Against a flag for each address.
    #[test]
    fn spans_are_the_addresses_that_were_added_and_not_removed(
        steps in proptest::collection::vec((any::<bool>(), 0_u64..60, 1_u64..20), 1..100),
    ) {
        let (mut spans, mut flags) = (Spans::default(), [false; 80]);
        for (adds, address, bytes) in steps {
            let span = Grant { address, bytes };
            let part = &mut flags[usize::try_from(address).unwrap()..][..usize::try_from(bytes).unwrap()];
            prop_assert_eq!(spans.meets(span), part.contains(&true));
            prop_assert_eq!(spans.covers(span), !part.contains(&false));
            let is_possible = !part.contains(&adds);
            let done = if adds { spans.insert(span) } else { spans.remove(span) };
            prop_assert_eq!(done, is_possible);
            if done {
                part.fill(adds);
            }
            let edges = flags.windows(2).filter(|pair| pair[0] != pair[1]).count() + usize::from(flags[0]);
            prop_assert_eq!(2 * spans.0.len(), edges, "no two spans are adjacent: {:?}", spans);
        }
    }
}
