//! The steps of a lease, each of them one script and so one step for everybody who looks. The keys are the
//! lock's and the mark's, the first argument is what the owner has written into the lock; two more scripts note failures.

use redis::Script;

/// The scripts, with the names by which the server knows them.
pub(super) struct Scripts {
    pub(super) ask: Script,
    pub(super) renew: Script,
    pub(super) complete: Script,
    pub(super) release: Script,
    pub(super) note: Script,
    pub(super) failure: Script,
}

pub(super) const GRANTED: &str = "granted";
pub(super) const MARKED: &str = "marked";
pub(super) const HELD: &str = "held";

pub(super) const OURS: &str = "ours";
pub(super) const LAPSED: &str = "lapsed";
pub(super) const TAKEN: &str = "taken";

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            ask: Script::new(ASK),
            renew: Script::new(RENEW),
            complete: Script::new(COMPLETE),
            release: Script::new(RELEASE),
            note: Script::new(NOTE),
            failure: Script::new(FAILURE),
        }
    }
}

/// ARGV: lock, life in ms. A lock that is the owner's already was granted by a question whose answer was lost.
const ASK: &str = r"
local mark = redis.call('GET', KEYS[2])
if mark then return {'marked', mark} end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return {'granted'} end
local lock = redis.call('GET', KEYS[1])
if lock == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {'granted'}
end
return {'held', lock}
";

/// ARGV: lock, life in ms.
const RENEW: &str = r"
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 'ours'
end
if redis.call('EXISTS', KEYS[2]) == 0 and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 'lapsed'
end
return 'taken'
";

/// ARGV: lock, mark, the mark's life in ms. A mark that is the very same was made by a question whose answer was lost.
const COMPLETE: &str = r"
local lock = redis.call('GET', KEYS[1])
local mark = redis.call('GET', KEYS[2])
if mark then
  if lock == ARGV[1] then redis.call('DEL', KEYS[1]) end
  return mark == ARGV[2] and 'ours' or 'taken'
end
if lock and lock ~= ARGV[1] then return 'taken' end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
if not lock then return 'lapsed' end
redis.call('DEL', KEYS[1])
return 'ours'
";

/// KEYS: the note of a failure, the mark. ARGV: the note, its life in ms. What was handled has not failed.
const NOTE: &str = r"
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return 'ok'
";

/// KEYS: the note of a failure, the mark.
const FAILURE: &str = r"
if redis.call('EXISTS', KEYS[2]) == 1 then return false end
return redis.call('GET', KEYS[1])
";

/// ARGV: lock.
const RELEASE: &str = r"
local lock = redis.call('GET', KEYS[1])
if lock == ARGV[1] then
  redis.call('DEL', KEYS[1])
  return 'ours'
end
if lock or redis.call('EXISTS', KEYS[2]) == 1 then return 'taken' end
return 'lapsed'
";
