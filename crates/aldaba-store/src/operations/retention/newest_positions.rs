//! The newest delivered deliveries of an application, found endpoint by endpoint.

use super::SettledPosition;

/// Positions that one read brings at most, to be sorted in memory.
const READ: usize = 100_000;

/// So many of them at most, newest first.
#[derive(Clone, Debug)]
pub(super) struct Newest {
    most: usize,
    positions: Vec<SettledPosition>,
}

impl Newest {
    pub(super) fn of(most: u32) -> Self {
        Self { most: most as usize, positions: Vec::new() }
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// How many endpoints one read may ask for, if each has as many as count.
    pub(super) fn endpoints_at_once(&self) -> usize {
        (READ / self.most.max(1)).max(1)
    }

    /// What is not after this position is not among them, whatever comes.
    pub(super) fn floor(&self) -> Option<SettledPosition> {
        self.positions.get(self.most.wrapping_sub(1)).copied()
    }

    pub(super) fn add(&mut self, more: Vec<SettledPosition>) {
        self.positions.extend(more);
        self.positions.sort_unstable_by(|a, b| b.cmp(a));
        self.positions.truncate(self.most);
    }

    /// The oldest one of the `count` newest; `None`: there are not so many.
    pub(super) fn oldest_of(&self, count: u32) -> Option<SettledPosition> {
        self.positions.get((count as usize).wrapping_sub(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seq;
    use aldaba_delivery::Timestamp;
    use proptest::prelude::*;

    fn position(at: i64, seq: i64) -> SettledPosition {
        SettledPosition { at: Timestamp::from_millis(at), seq: Seq(seq) }
    }

    #[test]
    fn as_many_as_are_kept_are_all_kept() {
        let mut newest = Newest::of(3);
        newest.add(vec![position(5, 1), position(3, 2)]);
        assert_eq!((newest.floor(), newest.oldest_of(3)), (None, None));
        newest.add(vec![position(4, 3)]);
        assert_eq!(newest.oldest_of(3), Some(position(3, 2)), "nothing is before it");
        assert_eq!(newest.oldest_of(1), Some(position(5, 1)), "a policy that keeps fewer");
        assert_eq!(Newest::of(0).oldest_of(0), None);
    }

    proptest! {
        #[test]
        fn it_is_the_end_of_the_sorted_list(parts in prop::collection::vec(prop::collection::vec(0..50_i64, 0..9), 0..9)) {
            let mut seq = 0;
            let mut all = Vec::new();
            let mut newest = Newest::of(7);
            for part in parts {
                let part: Vec<_> = part.into_iter().map(|at| { seq += 1; position(at, seq) }).collect();
                all.extend(part.iter().copied());
                let floor = newest.floor();
                newest.add(part.into_iter().filter(|position| floor.is_none_or(|floor| *position > floor)).collect());
            }
            all.sort_by(|a, b| b.cmp(a));
            for count in 1..=7 {
                prop_assert_eq!(newest.oldest_of(count), all.get(count as usize - 1).copied());
            }
        }
    }
}
