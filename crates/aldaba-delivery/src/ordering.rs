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
