//! Sends what is in the queue, one message at a time, on a task of its own.

use super::compose::Composer;
use super::inert::one_line;
use super::sorting::{Circumstances, SortedMails, sort};
use super::{MailFailure, MailOptions, MailQueue, OutgoingMail};
use crate::engine::Pause;
use crate::housekeeping::background::{self, StoreClosed, Task};
use crate::{Clock, ClockTrust, Entropy, Vault};
use aldaba_delivery::{OrgId, Timestamp};
use aldaba_store::{Done, Error, Mail, MailBatch, MailChange, MailChanged, MailNumber, NextMail, Store};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// The longest sleep: a request to confirm an address is queued without a signal.
const MAX_SLEEP: Duration = Duration::from_secs(2);
/// The delay after the store could not be asked or written.
const STORE_RETRY_DELAY: Duration = Duration::from_secs(1);
/// The delay after the mail server could not be reached, doubled each time.
const FIRST_SERVER_DELAY: Duration = Duration::from_secs(2);
const MAX_SERVER_DELAY: Duration = Duration::from_secs(5 * 60);
/// The delay after the conversation about a mail broke off, doubled each time.
const FIRST_BROKEN_DELAY: Duration = Duration::from_secs(2);
/// The delay after a mail was refused for the time being, doubled each time.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(60);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(4 * 3600);
/// Characters of a server's words in the log.
const MAX_LOGGED: usize = 300;

pub(crate) struct MailSender {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) trust: ClockTrust,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) vault: Vault,
    pub(crate) options: MailOptions,
    /// Other options, once an operator has changed them.
    pub(crate) renewed: watch::Receiver<MailOptions>,
    pub(crate) queue: MailQueue,
    pub(crate) server: ServerState,
    /// No mail leaves while it is on.
    pub(crate) pause: Pause,
    /// The organization that had its turn last.
    pub(crate) last: Option<OrgId>,
}

/// Whether the mail server can be reached, as far as is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerState {
    failures: u32,
    /// By the monotonic clock.
    retry_at: Option<Duration>,
}

impl ServerState {
    /// Returns how long nothing is sent.
    fn failed(&mut self, now: Duration) -> Duration {
        let delay = doubled(FIRST_SERVER_DELAY, self.failures, MAX_SERVER_DELAY);
        self.failures = self.failures.saturating_add(1);
        self.retry_at = Some(now + delay);
        delay
    }

    fn pause(&self, now: Duration) -> Option<Duration> {
        self.retry_at.map(|at| at.saturating_sub(now)).filter(|pause| !pause.is_zero())
    }
}

fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(times)).min(longest)
}

/// What a step came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// There may be more.
    Done,
    Sleep(Duration),
}

impl Task for MailSender {
    const NAME: &'static str = background::MAILS;

    async fn run(&mut self) -> StoreClosed {
        loop {
            self.pause.ended().await;
            let sleep = match self.step().await {
                Ok(Step::Done) => continue,
                Ok(Step::Sleep(sleep)) => sleep,
                Err(Error::Closed) => return StoreClosed,
                Err(error) => {
                    tracing::warn!(%error, "the queue of mails cannot be read or written; retrying");
                    STORE_RETRY_DELAY
                }
            };
            tokio::select! {
                () = self.queue.pending.notified() => {}
                () = tokio::time::sleep(sleep) => {}
            }
        }
    }
}

impl MailSender {
    /// Takes care of what one address gets next.
    pub(super) async fn step(&mut self) -> Result<Step, Error> {
        if self.renewed.has_changed().unwrap_or(false) {
            self.options = self.renewed.borrow_and_update().clone();
            // Perhaps another server, which has not failed.
            self.server = ServerState::default();
        }
        if let Some(pause) = self.server.pause(self.clock.monotonic()) {
            return Ok(Step::Sleep(pause.min(MAX_SLEEP)));
        }
        let now = self.clock.now();
        match self.store.next_mail(now, now + self.options.delay, self.last).await? {
            NextMail::At(next) => {
                let until = next.map_or(MAX_SLEEP, |at| at.since(now));
                Ok(Step::Sleep(until.clamp(Duration::from_millis(1), MAX_SLEEP)))
            }
            NextMail::Due(batch) => self.take_care_of(*batch, now).await,
        }
    }

    async fn take_care_of(&mut self, batch: MailBatch, now: Timestamp) -> Result<Step, Error> {
        let (address, message_id) = (batch.address.clone(), batch.message_id.clone());
        let to = match (&address[..], &self.options.operator) {
            ("", Some(operator)) => operator.clone(),
            (address, _) => address.to_owned(),
        };
        self.last = batch.org.or(self.last);
        let circumstances = Circumstances {
            may_end_by_time: self.trust.may_end_by_time(),
            has_operator: self.options.operator.is_some(),
        };
        let sorted = sort(batch, now, circumstances);
        self.apply_unsent(&sorted, &address, now).await?;
        if sorted.send.is_empty() {
            return Ok(Step::Done);
        }
        let numbers: Vec<_> = sorted.send.iter().map(|mail| mail.number).collect();
        let message_id = match message_id {
            Some(id) => id,
            None => {
                let id = self.new_message_id(now);
                let (mails, message_id) = (numbers.clone(), id.clone());
                self.writer().change(MailChange::Compose { mails, message_id }).await?;
                id
            }
        };
        let composer = Composer { options: &self.options, vault: &self.vault, entropy: &*self.entropy, now };
        let Some(mail) = composer.compose(&sorted.send, &to, &message_id) else {
            tracing::warn!(kind = %sorted.send[0].kind, "a mail of a kind that this version does not know is dropped");
            self.writer().change(MailChange::Forget { mails: numbers }).await?;
            return Ok(Step::Done);
        };
        let result = self.send(mail, numbers.clone(), address).await?;
        self.settle(&sorted.send, numbers, result).await
    }

    /// Sends a mail, and writes that it has left. Once begun, a stop of this task does not end it in between.
    async fn send(
        &self,
        mail: OutgoingMail,
        mails: Vec<MailNumber>,
        address: String,
    ) -> Result<Result<(), MailFailure>, Error> {
        let sending = self.queue.sending.clone().lock_owned().await;
        let (transport, writer, clock) = (self.options.transport.clone(), self.writer(), self.clock.clone());
        let sent = tokio::spawn(async move {
            let result = transport.send(&mail).await;
            if result.is_ok() {
                let at = clock.now();
                writer.change_surely(MailChange::Sent { mails, address, at }).await?;
            }
            drop(sending);
            Ok(result)
        });
        match sent.await {
            Ok(result) => result,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(Error::Closed),
        }
    }

    fn writer(&self) -> MailWriter {
        MailWriter(self.store.clone())
    }

    async fn settle(
        &mut self,
        mails: &[Mail],
        numbers: Vec<MailNumber>,
        result: Result<(), MailFailure>,
    ) -> Result<Step, Error> {
        let kind = mails[0].kind.as_str();
        let attempts = mails.iter().map(|mail| mail.attempts).max().unwrap_or_default();
        match result {
            Ok(()) => {
                if self.server.failures > 0 {
                    tracing::info!("the mail server takes mails again");
                }
                self.server = ServerState::default();
                tracing::debug!(kind, mails = mails.len(), "a mail has left");
            }
            Err(MailFailure::Server(why)) => {
                let delay = self.server.failed(self.clock.monotonic());
                let error = one_line(&why, MAX_LOGGED);
                tracing::warn!(
                    error,
                    ?delay,
                    "the mail server takes no mails; they wait, and are tried again"
                );
            }
            Err(MailFailure::Broken(why)) => {
                let delay = doubled(FIRST_BROKEN_DELAY, attempts, MAX_RETRY_DELAY);
                let error = one_line(&why, MAX_LOGGED);
                tracing::warn!(
                    kind,
                    error,
                    ?delay,
                    "the conversation with the mail server broke off; this mail is tried again"
                );
                let due_at = self.clock.now() + delay;
                self.writer().change_surely(MailChange::Retry { mails: numbers, due_at }).await?;
            }
            Err(MailFailure::Temporary(why)) => {
                let delay = doubled(FIRST_RETRY_DELAY, attempts, MAX_RETRY_DELAY);
                let error = one_line(&why, MAX_LOGGED);
                tracing::warn!(
                    kind,
                    error,
                    ?delay,
                    "the mail server refuses a mail for now; it is tried again"
                );
                let due_at = self.clock.now() + delay;
                self.writer().change_surely(MailChange::Retry { mails: numbers, due_at }).await?;
            }
            Err(MailFailure::Permanent(why)) => {
                let error = one_line(&why, MAX_LOGGED);
                tracing::error!(
                    kind,
                    error,
                    about = about(mails),
                    "the mail server refuses a mail; it is given up"
                );
                self.writer().change_surely(MailChange::Forget { mails: numbers }).await?;
            }
        }
        Ok(Step::Done)
    }

    /// Carries out what was decided about mails that are not sent now.
    async fn apply_unsent(&self, sorted: &SortedMails, address: &str, now: Timestamp) -> Result<(), Error> {
        if !sorted.unwanted.is_empty() {
            self.writer().change(MailChange::Forget { mails: sorted.unwanted.clone() }).await?;
        }
        if !sorted.too_old.is_empty() {
            let mails = sorted.too_old.len();
            tracing::error!(mails, "mails could not be sent for days; they are given up");
            self.writer().change(MailChange::Forget { mails: sorted.too_old.clone() }).await?;
        }
        for (mail, address) in &sorted.moved {
            self.writer().change(MailChange::Readdress { mail: *mail, address: address.clone() }).await?;
        }
        let mut asked = Vec::new();
        for (app, _) in &sorted.unconfirmed {
            if !asked.contains(app) {
                asked.push(*app);
                let address = address.to_owned();
                self.writer().change(MailChange::AskConfirmation { app: *app, address, at: now }).await?;
            }
        }
        for (mails, until) in &sorted.postponed {
            self.writer().change(MailChange::Postpone { mails: mails.clone(), due_at: *until }).await?;
        }
        Ok(())
    }

    fn new_message_id(&self, now: Timestamp) -> String {
        let random: [u8; 12] = self.entropy.bytes();
        let mut id = format!("<{}.", now.millis());
        for byte in random {
            let _ = write!(id, "{byte:02x}");
        }
        format!("{id}@{}>", self.options.domain)
    }
}

/// Writes to the queue.
struct MailWriter(Arc<dyn Store>);

impl MailWriter {
    async fn change(&self, change: MailChange) -> Result<MailChanged, Error> {
        let (answer, answered) = oneshot::channel();
        let done = Done::new(move |result| drop(answer.send(result)));
        self.0.change_mails(change, done);
        let changed = answered.await.map_err(|_| Error::Closed)??;
        if changed.left_out > 0 {
            tracing::error!(mails = changed.left_out, "mails were left out, because too many waited");
        }
        Ok(changed)
    }

    /// What a mail server has decided is written, however long that takes: else the mail would be sent again.
    async fn change_surely(&self, change: MailChange) -> Result<(), Error> {
        loop {
            match self.change(change.clone()).await {
                Err(error @ (Error::Busy | Error::Unavailable(_) | Error::Full | Error::Timeout)) => {
                    tracing::warn!(%error, "the end of a mail cannot be written; retrying");
                    tokio::time::sleep(STORE_RETRY_DELAY).await;
                }
                result => return result.map(drop),
            }
        }
    }
}

/// What mails are about, for the log: ids, and no addresses.
fn about(mails: &[Mail]) -> String {
    let ids = mails.iter().filter_map(|mail| mail.endpoint.as_ref()).take(3).map(|one| one.id.to_string());
    ids.collect::<Vec<_>>().join(", ")
}
