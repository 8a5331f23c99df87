use crate::Ending;

/// In which order an endpoint gets its deliveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ordering {
    /// As they are due, many at once.
    #[default]
    None,
    /// As they were accepted, one at a time.
    Fifo(OnExhausted),
}

/// What an ordered endpoint does when a delivery ends without success.
///
/// It skips unless told otherwise: one message that a receiver will never take must not stop all that
/// come after it without anybody having asked for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnExhausted {
    /// Goes on with the next.
    #[default]
    Skip,
    /// Stops until its owner has it go on.
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

    /// A delivery that ends without success stops the endpoint.
    pub fn blocks(self) -> bool {
        self == Self::Fifo(OnExhausted::Block)
    }

    /// Whether the endpoint lets nothing overtake a delivery that ends so. Where somebody has ended it, there is nobody
    /// to wait for.
    pub fn blocks_after(self, ending: Ending) -> bool {
        match ending {
            Ending::Dead(reason) => self.blocks() && !reason.is_manual(),
            Ending::Delivered => false,
        }
    }

    /// Whether a person may have a delivery attempted out of its turn. In an order one that waits may not overtake.
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
    fn only_a_death_that_nobody_has_asked_for_blocks() {
        let block = Ordering::Fifo(OnExhausted::Block);
        for reason in Reason::ALL {
            let by_hand = [Reason::Cancelled, Reason::PayloadDeleted].contains(&reason);
            assert_eq!(block.blocks_after(Ending::Dead(reason)), !by_hand, "{}", reason.name());
            assert!(!Ordering::Fifo(OnExhausted::Skip).blocks_after(Ending::Dead(reason)));
            assert!(!Ordering::None.blocks_after(Ending::Dead(reason)));
        }
        assert!(!block.blocks_after(Ending::Delivered));
    }

    #[test]
    fn a_manual_attempt_overtakes_nothing_in_an_order() {
        let fifo = Ordering::Fifo(OnExhausted::Skip);
        assert!(!fifo.allows_manual_attempt(true));
        assert!(fifo.allows_manual_attempt(false), "it has ended: its turn is over");
        assert!(Ordering::None.allows_manual_attempt(true));
    }
}
