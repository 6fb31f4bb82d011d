//! Seeded random numbers: the same seed gives the same test.

/// A stream of numbers (splitmix64: every seed gives a full-period stream).
#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    state: u64,
}

impl Numbers {
    /// Creates the stream of `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Creates stream number `number` of `seed`. Adjacent seeds have no streams in common.
    pub(crate) fn one_of(seed: u64, number: u64) -> Self {
        Self::new(Self::new(seed).next() ^ Self::new(number).next())
    }

    /// Returns the next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns an index into a list of `length`, which is not 0.
    pub(crate) fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("below a usize")
    }

    /// Returns true in `percent` percent of the calls.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
