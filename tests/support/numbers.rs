//! Numbers that look random and come from a seed: the same seed, the same test.

/// A stream of numbers (splitmix64: every seed gives a full-period stream).
#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    state: u64,
}

impl Numbers {
    /// The stream of `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Stream `number` of those of `seed`. Seeds that lie side by side have no streams in common.
    pub(crate) fn one_of(seed: u64, number: u64) -> Self {
        Self::new(Self::new(seed).next() ^ Self::new(number).next())
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A place in a list of `length`, which is not 0.
    pub(crate) fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("below a usize")
    }

    /// True `percent` times in a hundred.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
