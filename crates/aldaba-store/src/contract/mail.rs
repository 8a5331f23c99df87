//! Mails: what people are told by mail, until it has left the server.

use crate::operations::mail;
use aldaba_delivery::{AppId, EndpointId, HealthStatus, OrgId, Timestamp};
use std::borrow::Cow;
use std::time::Duration;

/// A mail to be queued. It is kept with what it tells of, in the same commit, until a mail server has taken it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMail {
    /// Whose queue it takes room in; `None`: the server's own.
    pub org: Option<OrgId>,
    pub recipient: MailRecipient,
    /// What it is about, such as `endpoint.failed`.
    pub kind: Cow<'static, str>,
    /// A JSON object. The store never looks inside.
    pub body: String,
    pub created_at: Timestamp,
    /// Not before this moment: mails for one address that come close together are joined.
    pub due_at: Timestamp,
    /// What it says of an outage that its owner may have been told of.
    pub outage: Option<OutageMail>,
}

impl NewMail {
    /// Mails of one organization that wait at most. What comes then is left out and counted.
    pub const MAX_PENDING: u32 = 10_000;
    /// Mails of one organization for one address that wait at most. What comes then is counted with the last of them.
    pub const MAX_PENDING_PER_ADDRESS: u32 = 200;
    /// The same of all organizations together.
    pub const MAX_PENDING_PER_ADDRESS_OF_ALL: u32 = 1_000;
    /// Addresses that are known of one application. One more takes the place of one that is not confirmed, or is refused.
    pub const MAX_ADDRESSES_PER_APPLICATION: u32 = 10_000;
    /// Those of them that wait to be confirmed. One more is refused, unless the time of another is over.
    pub const MAX_UNCONFIRMED_PER_APPLICATION: u32 = 100;
    /// How long an address may be confirmed.
    pub const CONFIRMATION_TIME: Duration = Duration::from_secs(7 * 24 * 3600);
    /// Requests to confirm an address that callers of one application cause on a day.
    pub const MAX_CONFIRMATIONS_PER_DAY: u32 = 20;
    /// Those of them that go to one mailbox: `owner+1@example.com` and `owner+2@example.com` are read by the same people.
    pub const MAX_CONFIRMATIONS_PER_MAILBOX: u32 = 3;
    /// Bytes of a mail address.
    pub const MAX_ADDRESS_BYTES: usize = 254;

    /// The request to confirm an address. The store queues it.
    pub const CONFIRM: &str = "address.confirm";
    /// An endpoint of which its owner was told that it fails was resumed by a person. The store queues it.
    pub const RESUMED: &str = "endpoint.resumed";
    /// Something that cannot wait: it comes before other mails to the same address.
    pub const CRITICAL: &str = "alert.critical";
}

/// To whom a mail goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailRecipient {
    /// The operator of the server, whose address is a setting.
    Operator,
    /// The owner of an endpoint. Where it has none, the people of its application.
    Endpoint(AppId, EndpointId),
    /// The people of an application.
    Application(AppId),
    /// An address of an application that is to be confirmed.
    Unconfirmed(AppId, String),
}

/// What a mail says of the outage of an endpoint. Each is said once in an outage, and its end only where something was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageMail {
    Warning,
    GivenUp,
    Failed,
    Over,
}

/// The number of a mail in the queue. A number is never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MailNumber(pub i64);

/// A mail that waits, with what is known now of what it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    pub number: MailNumber,
    pub org: Option<OrgId>,
    pub recipient: MailRecipient,
    pub kind: String,
    pub body: String,
    /// How many it stands for besides, for want of room.
    pub more: u32,
    pub created_at: Timestamp,
    /// How often it was refused for the time being.
    pub attempts: u32,
    /// The endpoint that it is about, unless it is deleted.
    pub endpoint: Option<MailEndpoint>,
    /// Its application, unless that is deleted.
    pub application: Option<MailApplication>,
    pub permission: MailPermission,
}

/// An application as a mail describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailApplication {
    pub name: String,
    /// A JSON object of strings.
    pub metadata: String,
}

/// An endpoint as a mail describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailEndpoint {
    pub id: EndpointId,
    pub name: Option<String>,
    /// Without credentials.
    pub url: String,
    pub status: HealthStatus,
    pub disabled: bool,
    /// Deliveries that wait for it, as far as they are counted.
    pub pending: usize,
    /// A JSON object of strings.
    pub metadata: String,
}

impl MailEndpoint {
    /// Pending deliveries beyond it are not counted.
    pub const MAX_COUNTED: usize = 1_000;
}

/// Whether a mail may be sent to the address that it was queued for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailPermission {
    Allowed,
    /// Its recipient has another address now.
    Moved(String),
    /// The address was given by a caller of the application's portal, and nobody has confirmed it.
    Unconfirmed(AppId),
    /// The recipient wants none, has no address any more, or is deleted.
    Unwanted,
}

/// Mails that one address gets next: those of one message that was composed before, or all that were not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailBatch {
    /// Whose mails these are; `None`: the server's own. Those of two organizations are never together.
    pub org: Option<OrgId>,
    /// Empty: the operator's.
    pub address: String,
    /// Of the message that was composed of them.
    pub message_id: Option<String>,
    pub mails: Vec<Mail>,
    /// How many this address got of the organization on this day.
    pub sent_today: u32,
    /// How many its mailbox got of all organizations together.
    pub sent_today_by_all: u32,
    /// When its mailbox got the last one, as far as that is known.
    pub last_sent_at: Option<Timestamp>,
    /// How many the organization has sent to any address.
    pub sent_today_of_organization: u32,
}

impl MailBatch {
    /// More wait for another one.
    pub const MAX_MAILS: usize = 100;
}

/// What is next in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextMail {
    Due(Box<MailBatch>),
    /// Nothing is due before this moment. `None`: nothing waits.
    At(Option<Timestamp>),
}

/// Who wants no mails: the bytes of the id of an endpoint, an application or an organization, and an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailSubscription {
    pub subject: [u8; 20],
    pub address: String,
}

/// A change of the queue, or of who gets mails.
#[derive(Clone, Debug)]
pub enum MailChange {
    Queue(Vec<NewMail>),
    /// Fixes the Message-ID of what was composed of these, before it is sent for the first time.
    Compose {
        mails: Vec<MailNumber>,
        message_id: String,
    },
    /// The mail server has taken what was composed of these: they leave, and count for the day of their address.
    Sent {
        mails: Vec<MailNumber>,
        address: String,
        at: Timestamp,
    },
    /// Refused for the time being.
    Retry {
        mails: Vec<MailNumber>,
        due_at: Timestamp,
    },
    /// They wait, through no fault of theirs.
    Postpone {
        mails: Vec<MailNumber>,
        due_at: Timestamp,
    },
    /// Nobody will get them.
    Forget {
        mails: Vec<MailNumber>,
    },
    /// Its recipient has another address now.
    Readdress {
        mail: MailNumber,
        address: String,
    },
    Unsubscribe {
        subscription: MailSubscription,
        at: Timestamp,
    },
    Subscribe {
        subscription: MailSubscription,
    },
    /// Queues a request to confirm an address, at most once a day.
    AskConfirmation {
        app: AppId,
        address: String,
        at: Timestamp,
    },
    /// Somebody who reads what the address gets has confirmed it: what waits for it may leave.
    Confirm {
        app: AppId,
        address: String,
        at: Timestamp,
    },
}

impl MailChange {
    /// How many mails it is about.
    pub(crate) fn mails(&self) -> usize {
        match self {
            Self::Queue(mails) => mails.len(),
            Self::Compose { mails, .. }
            | Self::Sent { mails, .. }
            | Self::Retry { mails, .. }
            | Self::Postpone { mails, .. }
            | Self::Forget { mails } => mails.len(),
            _ => 1,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Queue(mails) => mails.iter().map(|mail| mail.body.len()).sum(),
            _ => 0,
        }
    }
}

/// What came of a [`MailChange`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MailChanged {
    /// Mails that were queued, changed or removed; or whether anything else has changed.
    pub mails: usize,
    /// Mails that were left out for want of room since this was said last. They are not counted any more.
    pub left_out: u32,
}

contract! {
    /// The queue of mails.
    pub trait Mails {
        writes {
            change_mails(change: MailChange) -> MailChanged = ChangeMails(Box::new(change));
        }
        reads {
            /// What is due at a moment. What was not composed yet is joined with what the same address gets until `join_until`.
            /// The organization after `last` is next.
            background_read next_mail(now: Timestamp, join_until: Timestamp, last: Option<OrgId>) -> NextMail
                = |reading| mail::next(reading, now, join_until, last);

            /// Whether an address gets the mails about an endpoint or an application.
            read is_subscribed(subscription: MailSubscription) -> bool
                = |reading| mail::is_subscribed(reading, &subscription);

            /// Whether an address may get mails about endpoints of an application. `None`: nobody has given it.
            read is_mail_address_confirmed(app: AppId, address: String) -> Option<bool>
                = |reading| mail::is_confirmed(reading, app, &address);
        }
    }
}
