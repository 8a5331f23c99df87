/// A set of HTTP status codes, as inclusive ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusSet(Vec<(u16, u16)>);

impl StatusSet {
    pub fn ranges(ranges: impl IntoIterator<Item = (u16, u16)>) -> Self {
        Self(ranges.into_iter().collect())
    }

    pub fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|&(first, last)| (first..=last).contains(&status))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn as_ranges(&self) -> &[(u16, u16)] {
        &self.0
    }
}
