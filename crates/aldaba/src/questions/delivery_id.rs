//! The public ids of deliveries. The store numbers deliveries in their order, for all tenants together, and such a
//! number would tell each tenant how much the others send. So callers see the number under a permutation whose key
//! belongs to the installation: an id that says nothing, and needs no column.

use super::{Error, Missing};
use aldaba_delivery::{MessageId, Timestamp};
use aldaba_engine::{Engine, Entropy};
use aldaba_store::{DeliveryPosition, Done, Error as StoreError, Seq};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use tokio::sync::oneshot;

const PREFIX: &str = "dlv_";
const CHARACTERS: usize = 11;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const ROUNDS: u8 = 4;

/// Converts between numbers and ids.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryIds {
    key: Vec<u8>,
}

/// The public name of a delivery: `dlv_` and 11 letters or digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeliveryId(u64);

/// A position in a list of deliveries: where an iterator points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    at: CursorStart,
    id: DeliveryId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CursorStart {
    Message(MessageId),
    Moment(u64),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an iterator of a list of deliveries: take it from the page before")]
pub(crate) struct InvalidCursor;

impl DeliveryIds {
    /// With the key of the installation, which the first start creates.
    pub(crate) async fn of(engine: &Engine, entropy: &dyn Entropy) -> Result<Self, StoreError> {
        let (sender, stored) = oneshot::channel();
        let new_key: [u8; 16] = entropy.bytes();
        let done = Done::new(move |result| drop(sender.send(result)));
        engine.store().settle_setting("delivery-ids", new_key.to_vec(), done);
        Ok(Self { key: stored.await.map_err(|_| StoreError::Closed)?? })
    }

    pub(crate) fn id(&self, Seq(seq): Seq) -> DeliveryId {
        let (mut left, mut right) = halves(seq as u64);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ self.mix(round, right));
        }
        DeliveryId(whole(left, right))
    }

    pub(crate) fn seq(&self, DeliveryId(id): DeliveryId) -> Seq {
        let (mut left, mut right) = halves(id);
        for round in (0..ROUNDS).rev() {
            (left, right) = (right ^ self.mix(round, left), left);
        }
        Seq(whole(left, right) as i64)
    }

    /// An invalid id names no delivery.
    pub(crate) fn read(&self, text: &str) -> Result<Seq, Error> {
        let id = text.strip_prefix(PREFIX).and_then(parse).ok_or(Missing::Delivery)?;
        Ok(self.seq(DeliveryId(id)))
    }

    pub(crate) fn cursor(&self, position: DeliveryPosition) -> Cursor {
        let (at, seq) = match position {
            DeliveryPosition::Message(message, seq) => (CursorStart::Message(message), seq),
            DeliveryPosition::Moment(at, seq) => {
                (CursorStart::Moment(u64::try_from(at.millis()).unwrap_or(0)), seq)
            }
        };
        Cursor { at, id: self.id(seq) }
    }

    pub(crate) fn position(&self, Cursor { at, id }: Cursor) -> DeliveryPosition {
        let seq = self.seq(id);
        match at {
            CursorStart::Message(message) => DeliveryPosition::Message(message, seq),
            CursorStart::Moment(at) => {
                DeliveryPosition::Moment(Timestamp::from_millis(i64::try_from(at).unwrap_or(i64::MAX)), seq)
            }
        }
    }

    fn mix(&self, round: u8, half: u32) -> u32 {
        let mut hash = Sha256::new();
        hash.update(&self.key);
        hash.update([round]);
        hash.update(half.to_be_bytes());
        let digest: [u8; 32] = hash.finalize().into();
        u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
    }
}

fn halves(whole: u64) -> (u32, u32) {
    ((whole >> 32) as u32, whole as u32)
}

fn whole(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

fn parse(text: &str) -> Option<u64> {
    if text.len() != CHARACTERS {
        return None;
    }
    text.bytes().try_fold(0u64, |value, character| {
        let digit = match character {
            b'0'..=b'9' => character - b'0',
            b'A'..=b'Z' => character - b'A' + 10,
            b'a'..=b'z' => character - b'a' + 36,
            _ => return None,
        };
        value.checked_mul(62)?.checked_add(u64::from(digit))
    })
}

fn write(f: &mut fmt::Formatter<'_>, mut value: u64) -> fmt::Result {
    let mut text = [b'0'; CHARACTERS];
    for slot in text.iter_mut().rev() {
        *slot = ALPHABET[(value % 62) as usize];
        value /= 62;
    }
    f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        write(f, self.0)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            CursorStart::Message(message) => write!(f, "{message}.")?,
            CursorStart::Moment(at) => write!(f, "{at}.")?,
        }
        write(f, self.id.0)
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (at, id) = text.split_once('.').ok_or(InvalidCursor)?;
        let at = match at.parse() {
            Ok(message) => CursorStart::Message(message),
            Err(_) => CursorStart::Moment(at.parse().map_err(|_| InvalidCursor)?),
        };
        Ok(Self { at, id: DeliveryId(parse(id).ok_or(InvalidCursor)?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids() -> DeliveryIds {
        DeliveryIds { key: b"a key of 16 byte".to_vec() }
    }

    #[test]
    fn an_id_leads_back_to_its_delivery_and_tells_nothing_of_its_number() {
        let other = DeliveryIds { key: b"a different key!".to_vec() };
        for seq in [1, 2, 1_000_000, i64::MAX, i64::MIN] {
            let id = ids().id(Seq(seq)).to_string();
            assert_eq!(id.len(), PREFIX.len() + CHARACTERS);
            assert_eq!(ids().read(&id).unwrap(), Seq(seq));
            assert_ne!(other.read(&id).unwrap(), Seq(seq));
        }
        let [first, second] = [1, 2].map(|seq| ids().id(Seq(seq)).0);
        assert!(first.abs_diff(second) > 1 << 20, "neighbours are far apart");
    }

    #[test]
    fn an_invalid_id_names_no_delivery() {
        for text in
            ["", "dlv_", "dlv_1", "msg_00000000000", "dlv_0000000000!", "dlv_zzzzzzzzzzz", "00000000000"]
        {
            assert!(ids().read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_cursor_leads_back_to_its_position() {
        let message = MessageId::from_bytes([7; 20]);
        let moment = Timestamp::from_millis(1_780_000_000_123);
        for position in
            [DeliveryPosition::Message(message, Seq(5)), DeliveryPosition::Moment(moment, Seq(i64::MAX))]
        {
            let text = ids().cursor(position).to_string();
            assert_eq!(ids().position(text.parse().unwrap()), position);
        }
        for text in ["", ".", "5.", "x.00000000000", "msg_1.00000000000", "-5.00000000000"] {
            assert_eq!(text.parse::<Cursor>(), Err(InvalidCursor), "{text}");
        }
    }
}
