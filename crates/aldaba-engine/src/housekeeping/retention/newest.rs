//! The newest delivered deliveries of an application, found endpoint by endpoint.

use aldaba_store::Settled;

/// Places that one read brings at most, to be sorted in memory.
const READ: usize = 100_000;

/// So many of them at most, newest first.
#[derive(Debug)]
pub(super) struct Newest {
    most: usize,
    places: Vec<Settled>,
}

impl Newest {
    pub(super) fn of(most: u32) -> Self {
        Self { most: most as usize, places: Vec::new() }
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// How many endpoints one read may ask for, if each has as many as count.
    pub(super) fn endpoints_at_once(&self) -> usize {
        (READ / self.most.max(1)).max(1)
    }

    /// What is not after this place is not among them, whatever comes.
    pub(super) fn floor(&self) -> Option<Settled> {
        self.places.get(self.most.wrapping_sub(1)).copied()
    }

    pub(super) fn add(&mut self, more: Vec<Settled>) {
        self.places.extend(more);
        self.places.sort_unstable_by(|a, b| b.cmp(a));
        self.places.truncate(self.most);
    }

    /// The oldest one of the `count` newest; `None`: there are not so many.
    pub(super) fn oldest_of(&self, count: u32) -> Option<Settled> {
        self.places.get((count as usize).wrapping_sub(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_delivery::Timestamp;
    use aldaba_store::Seq;
    use proptest::prelude::*;

    fn place(at: i64, seq: i64) -> Settled {
        Settled { at: Timestamp::from_millis(at), seq: Seq(seq) }
    }

    #[test]
    fn as_many_as_are_kept_are_all_kept() {
        let mut newest = Newest::of(3);
        newest.add(vec![place(5, 1), place(3, 2)]);
        assert_eq!((newest.floor(), newest.oldest_of(3)), (None, None));
        newest.add(vec![place(4, 3)]);
        assert_eq!(newest.oldest_of(3), Some(place(3, 2)), "nothing is before it");
        assert_eq!(newest.oldest_of(1), Some(place(5, 1)), "a policy that keeps fewer");
        assert_eq!(Newest::of(0).oldest_of(0), None);
    }

    proptest! {
        #[test]
        fn it_is_the_end_of_the_sorted_list(parts in prop::collection::vec(prop::collection::vec(0..50_i64, 0..9), 0..9)) {
            let mut seq = 0;
            let mut all = Vec::new();
            let mut newest = Newest::of(7);
            for part in parts {
                let part: Vec<_> = part.into_iter().map(|at| { seq += 1; place(at, seq) }).collect();
                all.extend(part.iter().copied());
                let floor = newest.floor();
                newest.add(part.into_iter().filter(|place| floor.is_none_or(|floor| *place > floor)).collect());
            }
            all.sort_by(|a, b| b.cmp(a));
            for count in 1..=7 {
                prop_assert_eq!(newest.oldest_of(count), all.get(count as usize - 1).copied());
            }
        }
    }
}
