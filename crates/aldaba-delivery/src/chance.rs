/// A uniformly distributed random number, drawn by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance(pub u64);

impl Chance {
    pub const LOWEST: Self = Self(0);
    pub const HIGHEST: Self = Self(u64::MAX);

    /// A share of `span`, from 0 up to and including `span`.
    pub(crate) fn share_of(self, span: u64) -> u64 {
        let scaled = (u128::from(span) + 1) * u128::from(self.0);
        // The product is below (span + 1) · 2⁶⁴, so the quotient is at most `span`.
        (scaled >> 64) as u64
    }
}
