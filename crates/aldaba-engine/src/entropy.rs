//! The one file that draws random numbers.

use aldaba_delivery::Chance;
use parking_lot::Mutex;
use std::fmt;

/// Where chance comes from: ids, jitter, secrets.
pub trait Entropy: fmt::Debug + Send + Sync + 'static {
    fn fill(&self, bytes: &mut [u8]);
}

impl dyn Entropy {
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    pub fn chance(&self) -> Chance {
        Chance(u64::from_le_bytes(self.bytes()))
    }
}

/// The operating system's generator, asked for a page at a time: an id costs no system call.
pub struct SystemEntropy(Mutex<Pool>);

struct Pool {
    bytes: [u8; 4096],
    used: usize,
}

impl SystemEntropy {
    pub fn new() -> Self {
        Self(Mutex::new(Pool { bytes: [0; 4096], used: 4096 }))
    }
}

impl Default for SystemEntropy {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SystemEntropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemEntropy")
    }
}

impl Entropy for SystemEntropy {
    fn fill(&self, mut bytes: &mut [u8]) {
        let mut pool = self.0.lock();
        while !bytes.is_empty() {
            if pool.used == pool.bytes.len() {
                refill(&mut pool.bytes);
                pool.used = 0;
            }
            let used = pool.used;
            let take = bytes.len().min(pool.bytes.len() - used);
            let (now, later) = bytes.split_at_mut(take);
            now.copy_from_slice(&pool.bytes[used..used + take]);
            // What has been handed out must not lie around: it may have become a key.
            pool.bytes[used..used + take].fill(0);
            pool.used += take;
            bytes = later;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the file that draws random numbers")]
fn refill(bytes: &mut [u8]) {
    // Without randomness there is no safe way on: ids would clash and keys could be guessed.
    getrandom::fill(bytes).expect("the operating system gives random bytes");
}
