use super::*;
use aldaba_delivery::Timestamp;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn message(number: u8) -> MessageId {
    MessageId::new(Timestamp::from_millis(1_800_000_000_000), [number; 15])
}

fn attempt(number: u8, success: bool) -> RecordedAttempt {
    RecordedAttempt { message: message(number), success, answer: "200".into() }
}

/// An order: the shop (0) and the partner (4) want it.
const ORDER: u64 = 0;
const SHOP: usize = 0;
const PARTNER: usize = 4;

fn with_an_accepted_order() -> DeliveryCounters {
    let mut counters = DeliveryCounters::default();
    counters.begin(ORDER, ms(100));
    counters.accepted(ORDER, message(1));
    counters
}

#[test]
fn an_event_is_forgotten_once_receiver_and_store_agree() {
    let mut counters = with_an_accepted_order();
    assert_eq!(counters.totals().waiting, 2);
    counters.arrived(SHOP, ORDER, ms(110));
    counters.recorded(SHOP, attempt(1, true));
    counters.recorded(PARTNER, attempt(1, false));
    counters.recorded(PARTNER, attempt(1, true));
    assert_eq!(counters.open_messages(), [message(1)], "the partner's is not seen yet");
    counters.arrived(PARTNER, ORDER, ms(2110));
    assert!(counters.open.is_empty() && counters.numbers.is_empty());
    let totals = counters.totals();
    assert_eq!((totals.delivered, totals.waiting, totals.attempts, totals.failed), (2, 0, 3, 1));
    let rows = counters.rows(ms(3000));
    assert_eq!((rows[PARTNER].retries, rows[PARTNER].p50), (1, Some(ms(2010))));
}

#[test]
fn an_arrival_may_come_before_the_answer_that_it_was_accepted() {
    let mut counters = DeliveryCounters::default();
    counters.begin(ORDER, ms(0));
    counters.arrived(SHOP, ORDER, ms(1));
    counters.arrived(PARTNER, ORDER, ms(1));
    assert_eq!(counters.totals().waiting, 0);
    counters.accepted(ORDER, message(1));
    let totals = counters.totals();
    assert_eq!((totals.expected, totals.delivered, totals.waiting, totals.duplicates), (2, 2, 0, 0));
}

#[test]
fn what_arrives_again_is_no_second_delivery() {
    let mut counters = with_an_accepted_order();
    counters.arrived(SHOP, ORDER, ms(110));
    counters.arrived(SHOP, ORDER, ms(120));
    assert_eq!((counters.totals().delivered, counters.totals().duplicates), (1, 1));
}

#[test]
fn nothing_is_lost_that_waits_or_lies_in_the_dead_letter() {
    let mut counters = with_an_accepted_order();
    counters.arrived(SHOP, ORDER, ms(110));
    let says = |fate| HashMap::from([(message(1), [fate; ENDPOINT_COUNT])]);
    let final_counts = counters.close(&says(StoredFate::Waiting));
    let totals = final_counts.totals;
    assert_eq!((totals.delivered, totals.waiting, totals.dead, final_counts.lost), (1, 1, 0, 0));
    let final_counts = counters.close(&says(StoredFate::Dead));
    assert_eq!((final_counts.totals.waiting, final_counts.totals.dead, final_counts.lost), (0, 1, 0));
    assert_eq!(
        final_counts.lanes[PARTNER],
        EndpointCounts { deliveries: 1, dead: 1, ..EndpointCounts::default() }
    );
    assert_eq!(counters.totals().dead, 1, "the last picture shows it too");
    counters.dead_lettered(PARTNER, message(1));
    counters.dead_lettered(PARTNER, message(1));
    assert_eq!(counters.close(&says(StoredFate::Dead)).totals.dead, 1, "counted once");
}

#[test]
fn what_the_store_calls_delivered_but_nobody_saw_is_lost() {
    let mut counters = with_an_accepted_order();
    for fate in [StoredFate::Delivered, StoredFate::Unknown] {
        assert_eq!(counters.close(&HashMap::from([(message(1), [fate; ENDPOINT_COUNT])])).lost, 2);
    }
    assert_eq!(counters.close(&HashMap::new()).lost, 2, "nor can silence vouch for it");
}

#[test]
fn a_refused_event_asks_for_nothing() {
    let mut counters = DeliveryCounters::default();
    counters.begin(ORDER, ms(0));
    counters.refused(ORDER);
    assert_eq!(counters.totals(), Totals { refused: 1, ..Totals::default() });
}

#[test]
fn what_arrived_without_having_been_accepted_makes_up_for_nothing() {
    let mut counters = with_an_accepted_order();
    counters.begin(ORDER + 10, ms(100));
    counters.arrived(SHOP, ORDER + 10, ms(101));
    counters.refuse_unanswered();
    assert_eq!(counters.totals().delivered, 0);
    assert_eq!(counters.close(&HashMap::new()).lost, 2);
}

#[test]
fn what_others_send_counts_as_an_attempt_only() {
    let mut counters = DeliveryCounters::default();
    counters.recorded(SHOP, attempt(9, true));
    assert_eq!(counters.totals(), Totals { attempts: 1, ..Totals::default() });
}

#[test]
fn bars_show_whole_seconds_and_forget_old_ones() {
    let mut lane = EndpointCounters::default();
    for millis in [500, 600, 1500] {
        lane.arrival(ms(1), ms(millis));
    }
    let bars = lane.row(ms(2100)).bars;
    assert_eq!(bars[BARS - 2..], [2, 1]);
    let later = lane.row(ms(31_500)).bars;
    assert_eq!((later[0], later[1..].iter().sum::<u32>()), (1, 0));
    lane.arrival(ms(1), ms(100_000));
    assert_eq!(lane.seconds.len(), 1);
}

#[test]
fn percentiles_are_values_that_occurred() {
    let sorted: Vec<_> = (1..=100).map(ms).collect();
    assert_eq!((percentile(&sorted, 50), percentile(&sorted, 99)), (Some(ms(50)), Some(ms(99))));
    assert_eq!(percentile(&[ms(7)], 99), Some(ms(7)));
    assert_eq!(percentile(&[], 50), None);
}

#[test]
fn catching_up_after_a_crowd_is_told() {
    let mut counters = DeliveryCounters::default();
    for number in 0..CAUGHT_UP_MIN {
        let number = number * 10;
        counters.begin(number, ms(0));
        counters.accepted(number, message(u8::try_from(number / 10).unwrap()));
    }
    for number in 0..CAUGHT_UP_MIN {
        counters.arrived(PARTNER, number * 10, ms(5000));
    }
    let told = counters.recent_events.lines(5);
    assert_eq!(told.len(), 1);
    assert!(told[0].text().contains("has caught up: 25"), "{}", told[0].text());
}

#[test]
fn deliveries_are_the_delivered_the_waiting_and_the_dead_at_every_moment() {
    let mut counters = DeliveryCounters::default();
    let check = |counters: &DeliveryCounters, moment: &str| {
        let totals = counters.totals();
        assert_eq!(totals.expected, totals.delivered + totals.waiting + totals.dead, "{moment}: {totals:?}");
        for row in counters.rows(ms(0)) {
            assert!(row.delivered <= totals.delivered, "{moment}");
        }
        let rows: u64 = counters.rows(ms(0)).iter().map(|row| row.delivered + row.waiting + row.dead).sum();
        assert_eq!(rows, totals.expected, "{moment}");
    };
    counters.begin(ORDER, ms(0));
    counters.arrived(SHOP, ORDER, ms(1));
    check(&counters, "an arrival is ahead of the answer to the sender");
    assert_eq!(counters.totals().delivered, 0);
    counters.accepted(ORDER, message(1));
    check(&counters, "the answer has come");
    assert_eq!((counters.totals().delivered, counters.totals().waiting), (1, 1));
    counters.recorded(PARTNER, attempt(1, false));
    counters.dead_lettered(PARTNER, message(1));
    check(&counters, "one is dead");
    counters.arrived(PARTNER, ORDER, ms(9));
    check(&counters, "it was sent again by hand, and arrives");
    assert_eq!((counters.totals().delivered, counters.totals().dead), (2, 0));
}

#[test]
fn attempts_are_never_fewer_than_what_was_delivered() {
    let mut counters = with_an_accepted_order();
    let counts = |counters: &DeliveryCounters| {
        (counters.totals().delivered, counters.totals().attempts, counters.totals().failed)
    };
    counters.arrived(SHOP, ORDER, ms(110));
    assert_eq!(counts(&counters), (1, 1, 0), "the store was not read yet");
    counters.recorded(SHOP, attempt(1, true));
    assert_eq!(counts(&counters), (1, 1, 0), "nor is it counted twice");
    counters.recorded(PARTNER, attempt(1, false));
    assert_eq!(counts(&counters), (1, 2, 1));
    counters.arrived(PARTNER, ORDER, ms(2110));
    counters.recorded(PARTNER, attempt(1, true));
    assert_eq!(counts(&counters), (2, 3, 1));
}

#[test]
fn a_record_may_be_found_before_the_answer_that_it_was_accepted() {
    let mut counters = DeliveryCounters::default();
    counters.begin(ORDER, ms(0));
    for lane in [SHOP, PARTNER] {
        counters.arrived(lane, ORDER, ms(1));
        counters.recorded(lane, attempt(1, true));
    }
    counters.accepted(ORDER, message(1));
    assert_eq!((counters.totals().delivered, counters.totals().attempts), (2, 2));
    assert!(counters.open.is_empty() && counters.numbers.is_empty() && counters.early.is_empty());
    for number in 0..=MAX_EARLY_RECORDS {
        counters.recorded(SHOP, attempt(u8::try_from(number % 200).unwrap(), true));
    }
    assert_eq!(counters.early.len(), MAX_EARLY_RECORDS);
}

#[test]
fn an_endpoint_that_answers_late_is_slow_in_its_percentiles() {
    let mut counters = with_an_accepted_order();
    counters.arrived(SHOP, ORDER, ms(1600));
    assert_eq!(counters.rows(ms(2000))[SHOP].p50, Some(ms(1500)), "from sending to the answer");
}
