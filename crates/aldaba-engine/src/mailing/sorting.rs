//! Decides what becomes of the mails that one address gets next, without doing it.

use super::{
    LATER_OPERATOR_INTERVAL, MAX_MAIL_AGE, MAX_MAILS_PER_DAY, MAX_MAILS_PER_DAY_OF_ALL,
    MAX_MAILS_PER_DAY_OF_ORGANIZATION, MAX_SINGLE_MAILS, OPERATOR_INTERVAL,
};
use aldaba_delivery::{AppId, Timestamp};
use aldaba_store::{Mail, MailBatch, MailNumber, MailPermission, MailRecipient, NewMail, Quota};
use std::time::Duration;

/// How long a mail waits for its address to be confirmed before it is looked at again. A confirmation ends the wait.
const CONFIRMATION_WAIT: Duration = Duration::from_secs(6 * 3600);

/// What is to be done with a batch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SortedMails {
    /// One message of these is next.
    pub(super) send: Vec<Mail>,
    /// Nobody wants them.
    pub(super) unwanted: Vec<MailNumber>,
    /// They were tried for long enough.
    pub(super) too_old: Vec<MailNumber>,
    pub(super) moved: Vec<(MailNumber, String)>,
    /// Their address is to be confirmed first.
    pub(super) unconfirmed: Vec<(AppId, MailNumber)>,
    /// Until when `unconfirmed` wait, or all of them: the address got enough on this day.
    pub(super) postponed: Vec<(Vec<MailNumber>, Timestamp)>,
}

/// What a sender knows besides the batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances {
    /// The clock is trusted.
    pub(super) may_end_by_time: bool,
    /// The operator has an address.
    pub(super) has_operator: bool,
}

pub(super) fn sort(batch: MailBatch, now: Timestamp, circumstances: Circumstances) -> SortedMails {
    let Circumstances { may_end_by_time, has_operator } = circumstances;
    let operator_pause = batch.org.is_none().then(|| operator_pause(&batch, now));
    let left_today = left_today(&batch);
    let MailBatch { message_id, mails, .. } = batch;
    let mut sorted = SortedMails::default();
    let mut allowed = Vec::with_capacity(mails.len());
    for mail in mails {
        let number = mail.number;
        let concerns_endpoint = matches!(mail.recipient, MailRecipient::Endpoint(..));
        let is_wanted = match mail.recipient {
            MailRecipient::Operator => has_operator,
            _ => !concerns_endpoint || mail.endpoint.is_some(),
        };
        match mail.permission {
            MailPermission::Unwanted => sorted.unwanted.push(number),
            _ if !is_wanted => sorted.unwanted.push(number),
            _ if may_end_by_time && now.since(mail.created_at) > MAX_MAIL_AGE => sorted.too_old.push(number),
            // What was composed goes where it was addressed to: the server may have it already.
            MailPermission::Moved(ref address) if message_id.is_none() => {
                sorted.moved.push((number, address.clone()));
            }
            MailPermission::Moved(_) => sorted.unwanted.push(number),
            MailPermission::Unconfirmed(app) => sorted.unconfirmed.push((app, number)),
            MailPermission::Allowed => allowed.push(mail),
        }
    }
    let numbers = |mails: &[Mail]| mails.iter().map(|mail| mail.number).collect();
    if !sorted.unconfirmed.is_empty() {
        let waiting = sorted.unconfirmed.iter().map(|(_, number)| *number).collect();
        sorted.postponed.push((waiting, now + CONFIRMATION_WAIT));
    }
    if allowed.is_empty() {
        return sorted;
    }
    match operator_pause {
        None => {}
        Some(Duration::ZERO) => {
            sorted.send = allowed;
            return sorted;
        }
        Some(pause) => {
            sorted.postponed.push((numbers(&allowed), now + pause));
            return sorted;
        }
    }
    if left_today == 0 {
        sorted.postponed.push((numbers(&allowed), Quota::next_day(now)));
        return sorted;
    }
    if message_id.is_none() {
        // A request to confirm stands for itself.
        if let Some(at) = allowed.iter().position(|mail| mail.kind == NewMail::CONFIRM) {
            allowed.swap(0, at);
            allowed.truncate(1);
        }
        let is_last_of_day = left_today == 1;
        if allowed.len() <= MAX_SINGLE_MAILS && !is_last_of_day {
            allowed.truncate(1);
        }
    }
    sorted.send = allowed;
    sorted
}

/// How long the operator gets no other mail.
fn operator_pause(batch: &MailBatch, now: Timestamp) -> Duration {
    let cannot_wait = batch.mails.iter().any(|mail| mail.kind == NewMail::CRITICAL);
    let interval = match batch.sent_today < MAX_MAILS_PER_DAY || cannot_wait {
        true => OPERATOR_INTERVAL,
        false => LATER_OPERATOR_INTERVAL,
    };
    // A moment that is ahead was noted by a clock that was wrong.
    let last = batch.last_sent_at.filter(|at| *at <= now);
    last.map_or(Duration::ZERO, |at| (at + interval).since(now))
}

/// How many mails may still be sent on this day to who the batch is for.
fn left_today(batch: &MailBatch) -> u32 {
    let left = [
        (MAX_MAILS_PER_DAY, batch.sent_today),
        (MAX_MAILS_PER_DAY_OF_ALL, batch.sent_today_by_all),
        (MAX_MAILS_PER_DAY_OF_ORGANIZATION, batch.sent_today_of_organization),
    ];
    left.into_iter().map(|(most, sent)| most.saturating_sub(sent)).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_delivery::{EndpointId, HealthStatus, OrgId};
    use aldaba_store::MailEndpoint;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000_000);
    const APP: AppId = AppId::from_bytes([1; 20]);

    fn mail(number: i64, permission: MailPermission) -> Mail {
        let id = EndpointId::from_bytes([2; 20]);
        let (url, metadata) = ("https://example.com/".to_owned(), "{}".to_owned());
        let status = HealthStatus::Failed;
        Mail {
            number: MailNumber(number),
            org: None,
            recipient: MailRecipient::Endpoint(APP, id),
            kind: "endpoint.failed".into(),
            body: "{}".into(),
            more: 0,
            created_at: NOW,
            attempts: 0,
            endpoint: Some(MailEndpoint {
                id,
                name: None,
                url,
                status,
                disabled: false,
                pending: 0,
                metadata,
            }),
            application: None,
            permission,
        }
    }

    fn batch(mails: Vec<Mail>) -> MailBatch {
        MailBatch {
            org: Some(OrgId::from_bytes([3; 20])),
            address: "a@example.com".into(),
            message_id: None,
            mails,
            sent_today: 0,
            sent_today_by_all: 0,
            last_sent_at: None,
            sent_today_of_organization: 0,
        }
    }

    fn circumstances() -> Circumstances {
        Circumstances { may_end_by_time: true, has_operator: true }
    }

    fn allowed(count: i64) -> Vec<Mail> {
        (0..count).map(|number| mail(number, MailPermission::Allowed)).collect()
    }

    fn sent(batch: MailBatch) -> usize {
        sort(batch, NOW, circumstances()).send.len()
    }

    #[test]
    fn a_few_mails_go_one_by_one_and_many_become_a_digest() {
        assert_eq!([1, 2, 3, 4, 50].map(|count| sent(batch(allowed(count)))), [1, 1, 1, 4, 50]);
    }

    #[test]
    fn the_last_mail_of_a_day_has_all_that_waits_and_then_there_is_none() {
        let on_day = |sent_today| MailBatch { sent_today, ..batch(allowed(3)) };
        assert_eq!(sent(on_day(18)), 1);
        assert_eq!(sent(on_day(19)), 3);
        let sorted = sort(on_day(20), NOW, circumstances());
        assert_eq!(sorted.send, []);
        assert_eq!(sorted.postponed[0].0.len(), 3);
        assert_eq!(sorted.postponed[0].1, Quota::next_day(NOW));
    }

    #[test]
    fn an_address_has_a_limit_of_all_organizations_and_an_organization_one_of_all_addresses() {
        let by_all = |sent_today_by_all| MailBatch { sent_today_by_all, ..batch(allowed(3)) };
        assert_eq!([99, 100].map(|sent_today| sent(by_all(sent_today))), [3, 0]);
        let of_organization =
            |sent_today_of_organization| MailBatch { sent_today_of_organization, ..batch(allowed(3)) };
        assert_eq!([1_998, 1_999, 2_000].map(|sent_today| sent(of_organization(sent_today))), [1, 3, 0]);
    }

    fn to_operator(kind: &str) -> Mail {
        let mail = mail(0, MailPermission::Allowed);
        Mail { recipient: MailRecipient::Operator, endpoint: None, kind: kind.into(), ..mail }
    }

    /// How long mails of these kinds wait, if the operator got so many on this day, the last one a moment ago.
    fn operator_waits(kinds: &[&str], sent_today: u32, ago: i64) -> Duration {
        let mails = kinds.iter().map(|kind| to_operator(kind)).collect();
        let last_sent_at = Some(Timestamp::from_millis(NOW.millis() - ago * 1_000));
        let sorted =
            sort(MailBatch { org: None, sent_today, last_sent_at, ..batch(mails) }, NOW, circumstances());
        assert_eq!(sorted.send.is_empty(), !sorted.postponed.is_empty());
        sorted.postponed.first().map_or(Duration::ZERO, |(_, until)| until.since(NOW))
    }

    #[test]
    fn the_operator_gets_one_mail_a_minute_and_after_20_on_a_day_one_an_hour_but_for_critical_ones() {
        let all = |kinds: &[&str], sent_today| {
            [0, 20, 60, 3600].map(|ago| operator_waits(kinds, sent_today, ago).as_secs())
        };
        assert_eq!(all(&["alert.firing"; 2], 19), [60, 40, 0, 0]);
        assert_eq!(all(&["alert.firing"; 2], 20), [3600, 3580, 3540, 0]);
        assert_eq!(all(&[NewMail::CRITICAL, "alert.firing"], 5_000), [60, 40, 0, 0]);
        assert_eq!(operator_waits(&["alert.firing"], 1, -90), Duration::ZERO, "the clock was set back");
    }

    #[test]
    fn what_was_composed_stays_one_message() {
        let composed = |count| MailBatch { message_id: Some("<a@b>".into()), ..batch(allowed(count)) };
        assert_eq!([1, 2, 4].map(|count| sent(composed(count))), [1, 2, 4]);
    }

    #[test]
    fn a_request_to_confirm_is_no_part_of_a_digest() {
        let mut mails = allowed(5);
        mails[3].kind = NewMail::CONFIRM.into();
        mails[3].recipient = MailRecipient::Unconfirmed(APP, "a@example.com".into());
        let sorted = sort(batch(mails), NOW, circumstances());
        assert_eq!(sorted.send.iter().map(|mail| mail.number.0).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn mails_go_only_where_they_may() {
        let permissions = [
            MailPermission::Allowed,
            MailPermission::Unwanted,
            MailPermission::Moved("b@example.com".into()),
            MailPermission::Unconfirmed(APP),
        ];
        let mails = (0..).zip(permissions).map(|(number, permission)| mail(number, permission)).collect();
        let sorted = sort(batch(mails), NOW, circumstances());
        assert_eq!(sorted.send.iter().map(|mail| mail.number.0).collect::<Vec<_>>(), [0]);
        assert_eq!(sorted.unwanted, [MailNumber(1)]);
        assert_eq!(sorted.moved, [(MailNumber(2), "b@example.com".into())]);
        assert_eq!(sorted.unconfirmed, [(APP, MailNumber(3))]);
        assert_eq!(sorted.postponed, [(vec![MailNumber(3)], NOW + CONFIRMATION_WAIT)]);
    }

    #[test]
    fn a_mail_is_given_up_after_its_time_if_the_clock_is_trusted() {
        let old =
            || vec![Mail { created_at: NOW.before(MAX_MAIL_AGE * 2), ..mail(0, MailPermission::Allowed) }];
        assert_eq!(sort(batch(old()), NOW, circumstances()).too_old, [MailNumber(0)]);
        assert_eq!(
            sort(batch(old()), NOW, Circumstances { may_end_by_time: false, ..circumstances() }).send.len(),
            1
        );
    }

    #[test]
    fn a_mail_about_a_deleted_endpoint_or_to_no_operator_is_not_sent() {
        let deleted = Mail { endpoint: None, ..mail(0, MailPermission::Allowed) };
        assert_eq!(sort(batch(vec![deleted]), NOW, circumstances()).unwanted, [MailNumber(0)]);
        let operator = || {
            let mail = mail(0, MailPermission::Allowed);
            let mails = vec![Mail { recipient: MailRecipient::Operator, endpoint: None, ..mail }];
            MailBatch { org: None, ..batch(mails) }
        };
        assert_eq!(
            sort(operator(), NOW, Circumstances { has_operator: false, ..circumstances() }).unwanted,
            [MailNumber(0)]
        );
        assert_eq!(sent(operator()), 1);
    }
}
