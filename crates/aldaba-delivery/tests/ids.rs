//! Ids: typed, sortable by time, and the same as the KSUIDs that people know.

use aldaba_delivery::{AppId, AttemptId, EndpointId, Id, IdKind, MessageId, OrgId, Timestamp};
use proptest::prelude::*;
use svix_ksuid::{KsuidLike, KsuidMs};

const EPOCH_MILLIS: i64 = 1_400_000_000_000;
const LAST_MILLIS: i64 = EPOCH_MILLIS + u32::MAX as i64 * 1000 + 999;

fn text(bytes: [u8; 20]) -> String {
    MessageId::from_bytes(bytes).to_string()
}

#[test]
fn each_kind_has_its_prefix_and_takes_no_other() {
    fn check<K: IdKind>(prefix: &str) {
        let id = Id::<K>::from_bytes([7; 20]);
        assert_eq!(id.to_string(), format!("{prefix}{}", &text([7; 20])[4..]));
        assert_eq!(id.to_string().parse(), Ok(id));
        let error = "org".parse::<Id<K>>().unwrap_err();
        assert_eq!(error.to_string(), format!("not an id: expected `{prefix}` and 27 letters or digits"));
    }
    fn kind_of<K: IdKind>(_: Id<K>, prefix: &str) {
        check::<K>(prefix);
    }
    kind_of(OrgId::from_bytes([0; 20]), "org_");
    kind_of(AppId::from_bytes([0; 20]), "app_");
    kind_of(EndpointId::from_bytes([0; 20]), "ep_");
    kind_of(MessageId::from_bytes([0; 20]), "msg_");
    kind_of(AttemptId::from_bytes([0; 20]), "atmpt_");
    assert!(text([7; 20]).parse::<AppId>().is_err());
}

#[test]
fn the_smallest_and_the_greatest_id_are_written_in_27_characters() {
    assert_eq!(text([0; 20]), "msg_000000000000000000000000000");
    assert_eq!(text([255; 20]), "msg_aWgEPTl1tmebfsQzFP4bxwgy80V");
}

#[test]
fn text_beyond_the_greatest_id_is_refused() {
    for tail in ["aWgEPTl1tmebfsQzFP4bxwgy80W", "zzzzzzzzzzzzzzzzzzzzzzzzzzz"] {
        assert!(format!("msg_{tail}").parse::<MessageId>().is_err(), "{tail}");
    }
}

#[test]
fn text_of_another_shape_is_refused() {
    let id = text([9; 20]);
    let spellings =
        ["", "msg_", &id[4..], &id[..30], &format!("{id}0"), &format!(" {id}"), &id.to_uppercase()];
    for spelling in spellings {
        assert!(spelling.parse::<MessageId>().is_err(), "{spelling:?}");
    }
    assert!("msg_00000000000000000000000000-".parse::<MessageId>().is_err());
    assert!("msg_0000000000000000000000000ñ".parse::<MessageId>().is_err());
}

#[test]
fn bytes_of_another_length_are_refused() {
    assert!(MessageId::from_slice(&[0; 19]).is_err());
    assert!(MessageId::from_slice(&[0; 21]).is_err());
    assert_eq!(MessageId::from_slice(&[5; 20]), Ok(MessageId::from_bytes([5; 20])));
}

#[test]
fn moments_that_do_not_fit_become_the_nearest_that_does() {
    for early in [i64::MIN, -1, 0, EPOCH_MILLIS - 1] {
        let id = MessageId::first_at(Timestamp::from_millis(early));
        assert_eq!(id.created_at().millis(), EPOCH_MILLIS, "{early}");
    }
    for late in [LAST_MILLIS, LAST_MILLIS + 1, i64::MAX] {
        let id = MessageId::first_at(Timestamp::from_millis(late));
        assert_eq!(id.created_at().millis(), LAST_MILLIS - 3, "{late}");
    }
}

proptest! {
    #[test]
    fn an_id_survives_its_text(bytes: [u8; 20]) {
        let id = AttemptId::from_bytes(bytes);
        prop_assert_eq!(id.to_string().parse::<AttemptId>(), Ok(id));
        prop_assert_eq!(id.as_bytes(), &bytes);
    }

    #[test]
    fn text_that_is_an_id_is_its_only_spelling(tail in "[0-9A-Za-z]{27}") {
        let spelling = format!("ep_{tail}");
        if let Ok(id) = spelling.parse::<EndpointId>() {
            prop_assert_eq!(id.to_string(), spelling);
        }
    }

    #[test]
    fn every_parsed_id_round_trips_and_nothing_panics(text in ".*") {
        for spelling in [text.clone(), format!("org_{text}")] {
            if let Ok(id) = spelling.parse::<OrgId>() {
                prop_assert_eq!(id.to_string(), spelling);
            }
        }
    }

    #[test]
    fn text_order_is_byte_order(a: [u8; 20], b: [u8; 20]) {
        let (first, second) = (MessageId::from_bytes(a), MessageId::from_bytes(b));
        prop_assert_eq!(first.cmp(&second), a.cmp(&b));
        prop_assert_eq!(text(a).cmp(&text(b)), a.cmp(&b));
    }

    #[test]
    fn order_is_the_order_of_time(a in EPOCH_MILLIS..LAST_MILLIS, b in EPOCH_MILLIS..LAST_MILLIS,
                                  random_a: [u8; 15], random_b: [u8; 15]) {
        let first = MessageId::new(Timestamp::from_millis(a), random_a);
        let second = MessageId::new(Timestamp::from_millis(b), random_b);
        if a / 4 != b / 4 {
            prop_assert_eq!(first.cmp(&second), a.cmp(&b));
        }
    }

    #[test]
    fn later_is_never_before_earlier_at_any_moment(a: i64, b: i64, random: [u8; 15]) {
        let id = |millis| AppId::new(Timestamp::from_millis(millis), random);
        prop_assert!(id(a.min(b)) <= id(a.max(b)));
    }

    #[test]
    fn the_first_id_of_a_moment_sorts_before_the_others(millis: i64, random: [u8; 15]) {
        let at = Timestamp::from_millis(millis);
        prop_assert!(MessageId::first_at(at) <= MessageId::new(at, random));
    }

    #[test]
    fn an_id_knows_its_moment_to_4_ms(millis in EPOCH_MILLIS..LAST_MILLIS, random: [u8; 15]) {
        let created = MessageId::new(Timestamp::from_millis(millis), random).created_at();
        prop_assert!((0..4).contains(&(millis - created.millis())));
    }

    #[test]
    fn ids_agree_with_ksuids(millis in EPOCH_MILLIS..LAST_MILLIS, random: [u8; 15]) {
        let id = MessageId::new(Timestamp::from_millis(millis), random);
        let ksuid = KsuidMs::from_millis(Some(millis), Some(&random));
        prop_assert_eq!(id.as_bytes(), ksuid.bytes());
        prop_assert_eq!(id.to_string(), format!("msg_{ksuid}"));
        prop_assert_eq!(id.created_at().millis(), ksuid.timestamp_millis());
    }
}
