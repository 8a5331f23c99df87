//! The operations of a lease, each one script and so atomic. The keys are those of the lock and the mark; the first
//! argument is the owner's value of the lock. More scripts store and read failures and counts.

use redis::Script;

/// The scripts, with the names by which the server knows them.
pub(super) struct Scripts {
    pub(super) ask: Script,
    pub(super) renew: Script,
    pub(super) complete: Script,
    pub(super) release: Script,
    pub(super) note: Script,
    pub(super) failure: Script,
    pub(super) count: Script,
    pub(super) counts: Script,
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
            count: Script::new(COUNT),
            counts: Script::new(COUNTS),
        }
    }
}

/// ARGV: lock, life in ms. The owner may already have the lock, from a request with a lost answer.
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

/// ARGV: lock, mark, the mark's life in ms. The same mark may exist, from a request with a lost answer.
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

/// KEYS: the failure note, the mark. ARGV: the note, its life in ms. A marked event gets no note.
const NOTE: &str = r"
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return 'ok'
";

/// KEYS: the failure note, the mark.
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

/// KEYS: the counts of this hour. ARGV: new events, duplicates, their life in ms, a token of this call: it may be repeated
/// after a lost answer.
const COUNT: &str = r"
if redis.call('HGET', KEYS[1], 'last') == ARGV[4] then return 'ok' end
redis.call('HINCRBY', KEYS[1], 'new', ARGV[1])
redis.call('HINCRBY', KEYS[1], 'duplicates', ARGV[2])
redis.call('HSET', KEYS[1], 'last', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 'ok'
";

/// KEYS: the counts of hours.
const COUNTS: &str = r"
local new, duplicates = 0, 0
for _, key in ipairs(KEYS) do
  local found = redis.call('HMGET', key, 'new', 'duplicates')
  new = new + tonumber(found[1] or 0)
  duplicates = duplicates + tonumber(found[2] or 0)
end
return {new, duplicates}
";
