use crate::Ending;

/// The order in which an endpoint gets its deliveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ordering {
    /// By due time, many at once.
    #[default]
    None,
    /// In the order of acceptance, one at a time.
    Fifo(OnExhausted),
}

/// What an ordered endpoint does when a delivery ends without success.
///
/// The default is to skip: one message that a receiver never accepts must not stop all later ones unless
/// somebody asked for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnExhausted {
    /// Continues with the next delivery.
    #[default]
    Skip,
    /// Stops until its owner resumes it.
    Block,
}

impl Ordering {
    pub const NAMES: [&str; 2] = ["none", "fifo"];

    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fifo(_) => "fifo",
        }
    }

    pub fn on_exhausted(self) -> Option<OnExhausted> {
        match self {
            Self::None => None,
            Self::Fifo(then) => Some(then),
        }
    }

    pub fn is_fifo(self) -> bool {
        self != Self::None
    }

    /// Whether a delivery that ends without success blocks the endpoint.
    pub fn blocks(self) -> bool {
        self == Self::Fifo(OnExhausted::Block)
    }

    /// Whether the endpoint blocks after this ending. A delivery that somebody ended on purpose does not block.
    pub fn blocks_after(self, ending: Ending) -> bool {
        match ending {
            Ending::Dead(reason) => self.blocks() && !reason.is_manual(),
            Ending::Delivered => false,
        }
    }

    /// Whether a manual attempt is allowed. A pending delivery may not overtake others in an ordered lane.
    pub fn allows_manual_attempt(self, waits: bool) -> bool {
        !(waits && self.is_fifo())
    }
}

impl OnExhausted {
    pub const ALL: [Self; 2] = [Self::Skip, Self::Block];

    pub fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Block => "block",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;

    #[test]
    fn only_an_ending_that_nobody_asked_for_blocks() {
        let block = Ordering::Fifo(OnExhausted::Block);
        for reason in Reason::ALL {
            let is_manual = [Reason::Cancelled, Reason::PayloadDeleted].contains(&reason);
            assert_eq!(block.blocks_after(Ending::Dead(reason)), !is_manual, "{}", reason.name());
            assert!(!Ordering::Fifo(OnExhausted::Skip).blocks_after(Ending::Dead(reason)));
            assert!(!Ordering::None.blocks_after(Ending::Dead(reason)));
        }
        assert!(!block.blocks_after(Ending::Delivered));
    }

    #[test]
    fn a_manual_attempt_overtakes_nothing_in_an_ordered_lane() {
        let fifo = Ordering::Fifo(OnExhausted::Skip);
        assert!(!fifo.allows_manual_attempt(true));
        assert!(fifo.allows_manual_attempt(false), "it has ended");
        assert!(Ordering::None.allows_manual_attempt(true));
    }
}
