//! Chance from a seed.

use aldaba_engine::Entropy;
use parking_lot::Mutex;
use std::time::Duration;

/// A small generator (SplitMix64). Equal seeds give equal throws on every machine.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Dice of their own for one purpose, so that more throws there change nothing elsewhere.
    pub fn of(seed: u64, purpose: &str) -> Self {
        let mixed = purpose.bytes().fold(seed, |state, byte| {
            let mut dice = Self(state ^ u64::from(byte));
            dice.throw()
        });
        Self(mixed)
    }

    pub fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `low` up to and including `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.throw() % (high - low + 1)
    }

    /// An index into something that is `length` long.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.throw() % length as u64).unwrap_or(0)
    }

    pub fn percent(&mut self, share: u64) -> bool {
        self.throw() % 100 < share
    }

    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.index(items.len())].clone()
    }

    pub fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }

    pub fn span(&mut self, low: Duration, high: Duration) -> Duration {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        self.millis(millis(low), millis(high))
    }
}

/// What the engine draws its ids and jitter from.
#[derive(Debug)]
pub struct SeededEntropy(Mutex<Dice>);

impl SeededEntropy {
    pub fn new(dice: Dice) -> Self {
        Self(Mutex::new(dice))
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        let mut dice = self.0.lock();
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&dice.throw().to_le_bytes()[..chunk.len()]);
        }
    }
}
