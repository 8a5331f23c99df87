//! Inbound doors: what was answered with 200 is on disk, once and byte by byte; what was refused is not.

use super::Findings;
use crate::client::Notes;
use crate::log::{AcceptCommit, Heard, InboundRequest, Log, Request, Said, SourceAction};
use crate::scenario::{Naming, Scenario, SourcePlan, Version};
use crate::store::MAX_REPLY_DELAY;
use aldaba_delivery::{AppId, MessageId, SourceId, Timestamp};
use aldaba_store::operations::everything::Everything;
use aldaba_store::{Message, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a rotation may have waited for its commit.
const SLOW_CHANGE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Everything that is known of one source.
pub(super) struct Inlet<'a> {
    app: AppId,
    plan: &'a SourcePlan,
    /// What it was from when on; `None`: deleted.
    versions: Vec<(Timestamp, Option<&'a Version>)>,
    rotated: Option<Timestamp>,
    inbound: Vec<&'a InboundRequest>,
    /// Of its application, those that were removed too.
    messages: BTreeMap<MessageId, &'a Message>,
}

pub(super) fn inlets<'a>(scenario: &'a Scenario, disk: &'a Everything, log: &'a Log) -> Vec<Inlet<'a>> {
    // They were made in the order of their numbers.
    let mut ids: Vec<SourceId> = Vec::new();
    let mut inlets: Vec<Inlet<'a>> = Vec::new();
    for commit in &log.sources {
        let known = ids.iter().position(|id| *id == commit.source);
        let number = known.unwrap_or(ids.len());
        let plan = &scenario.sources[number];
        if known.is_none() {
            ids.push(commit.source);
            let (versions, rotated) = (Vec::new(), None);
            let inbound = log.inbound.iter().filter(|request| request.source == number).collect();
            let messages = disk.messages.iter().filter(|message| message.app == commit.app);
            let messages = messages.map(|message| (message.id, message)).collect();
            inlets.push(Inlet { app: commit.app, plan, versions, rotated, inbound, messages });
        }
        let version = |name: &str| name.parse().ok().and_then(|number: usize| plan.versions.get(number));
        match &commit.action {
            SourceAction::Is(name) => inlets[number].versions.push((commit.at, version(name))),
            SourceAction::Deleted => inlets[number].versions.push((commit.at, None)),
            SourceAction::Rotated => inlets[number].rotated = Some(commit.at),
        }
    }
    inlets
}

pub(super) fn taken_is_on_disk(inlets: &[Inlet<'_>], found: &mut Findings) {
    for (inlet, request, heard) in heard(inlets) {
        let is_kept = match heard.said {
            Said::New(Some(message)) => {
                inlet.messages.get(&message).is_some_and(|row| inlet.is(row, request))
            }
            Said::New(None) => inlet.messages.values().any(|row| inlet.is(row, request)),
            Said::Duplicate(message) | Said::Reopened(message) => {
                inlet.messages.get(&message).is_some_and(|row| inlet.names(row, request))
            }
            _ => continue,
        };
        found.require(is_kept, "taken", || format!("{request:?} is not on disk"));
        found.require(heard.on_disk, "taken", || format!("{request:?} was not on disk when it was answered"));
    }
}

/// Within its window, and as long as it is kept, an event is one message.
pub(super) fn each_event_is_once(disk: &Everything, inlets: &[Inlet<'_>], found: &mut Findings) {
    for inlet in inlets {
        let mut events: BTreeMap<&[u8], Vec<&Message>> = BTreeMap::new();
        for message in inlet.messages.values() {
            let name = match inlet.plan.naming {
                Naming::ById => message.content.event_id.as_deref().unwrap_or_default().as_bytes(),
                Naming::ByBody => &message.content.payload,
                Naming::ByNothing => continue,
            };
            events.entry(name).or_default().push(message);
        }
        let window = DAY * u32::from(inlet.plan.window_days);
        for (name, mut messages) in events {
            messages.sort_by_key(|message| message.created_at);
            for pair in messages.windows(2) {
                let [first, second] = [pair[0], pair[1]];
                let is_over =
                    second.created_at >= first.created_at + window && !disk.has_message(inlet.app, first.id);
                found.require(is_over, "once", || {
                    let (first, second) = ((first.id, first.created_at), (second.id, second.created_at));
                    format!("{} was stored as {first:?} and as {second:?}", String::from_utf8_lossy(name))
                });
            }
        }
    }
    let mut new = BTreeSet::new();
    for (_, request, heard) in heard(inlets) {
        if let Said::New(Some(message)) = heard.said {
            found.require(new.insert(message), "once", || format!("{request:?} was new a second time"));
        }
    }
}

/// A repeat of an event whose forwarding has failed opens it again: it is not taken for a duplicate and forgotten.
pub(super) fn a_repeat_opens_what_has_failed(inlets: &[Inlet<'_>], found: &mut Findings) {
    for (_, request, heard) in heard(inlets) {
        let forgotten =
            matches!(heard.said, Said::Duplicate(_)) && !request.failed.is_empty() && heard.still_failed;
        found.require(!forgotten, "reopened", || format!("{request:?} was taken for a duplicate"));
    }
}

/// Everything that is stored came from the sender, and nothing of it was refused.
pub(super) fn only_what_is_taken_is_stored(inlets: &[Inlet<'_>], log: &Log, found: &mut Findings) {
    let accepts: BTreeMap<MessageId, &AcceptCommit> =
        log.accepts.iter().map(|accept| (accept.message, accept)).collect();
    for inlet in inlets {
        for message in inlet.messages.values() {
            let Some(accept) = accepts.get(&message.id) else { continue };
            found.require(!inlet.origins(message, accept).is_empty(), "refused", || {
                let (id, event) = (message.id, &message.content.event_id);
                format!("{id} ({event:?}) was stored, and nothing that a source took is like it")
            });
        }
    }
}

/// What goes out are the bytes that came in, with the headers that came with them.
pub(super) fn what_goes_out_is_what_came_in(
    disk: &Everything,
    inlets: &[Inlet<'_>],
    log: &Log,
    found: &mut Findings,
) {
    let messages: BTreeMap<MessageId, &Message> =
        disk.messages.iter().map(|message| (message.id, message)).collect();
    let accepts: BTreeMap<MessageId, &AcceptCommit> =
        log.accepts.iter().map(|accept| (accept.message, accept)).collect();
    let mut labels: BTreeMap<MessageId, BTreeSet<&str>> = BTreeMap::new();
    for inlet in inlets {
        for message in inlet.messages.values() {
            let Some(accept) = accepts.get(&message.id) else { continue };
            let origins = inlet.origins(message, accept);
            labels.insert(message.id, origins.iter().map(|request| request.label.as_str()).collect());
        }
    }
    let mut first: BTreeMap<MessageId, &Request> = BTreeMap::new();
    for request in &log.requests {
        let Some(message) = messages.get(&request.message) else { continue };
        found.require(message.content.payload == request.body, "bytes", || {
            format!("{} went out with another body: {:?}", message.id, request.body)
        });
        let Some(labels) = labels.get(&message.id) else { continue };
        let label = request.label.as_deref().unwrap_or_default();
        found.require(labels.contains(label), "bytes", || {
            format!("{} went out with the headers of `{label}`; it came as one of {labels:?}", message.id)
        });
        let before = *first.entry(message.id).or_insert(request);
        found.require(before.label == request.label, "bytes", || {
            format!("{} went out with headers of `{label}`, and before of {:?}", message.id, before.label)
        });
    }
}

/// Every answer is one that the source could give by what it was at that time.
pub(super) fn answers_fit(disk: &Everything, inlets: &[Inlet<'_>], notes: &Notes, found: &mut Findings) {
    for (inlet, request, heard) in heard(inlets) {
        let versions: Vec<_> = inlet.at_the_time(request, heard).collect();
        let any = |fits: &dyn Fn(&Version) -> bool| versions.iter().flatten().any(|version| fits(version));
        let knows = |version: &Version| request.key.is_some_and(|key| version.keys.contains(&key));
        let wants = |version: &Version| knows(version) && version.wants(&request.event_type);
        let body_of = |message: MessageId| inlet.messages.get(&message).map(|row| &row.content.payload);
        let is_gone =
            |message: MessageId| notes.to_expunge.contains(&message) || !disk.has_message(inlet.app, message);
        let url_has_ended = request.old_url && inlet.rotated.is_some();
        let rotated = inlet.rotated.unwrap_or(Timestamp::MAX);
        let fits = match heard.said {
            Said::New(_) => any(&wants),
            Said::Duplicate(message) | Said::Reopened(message) => {
                body_of(message) == Some(&request.body) && any(&wants)
                    || any(&|version| wants(version) && version.other_body_is_duplicate)
                    || is_gone(message) && any(&wants)
            }
            Said::OtherBody(message) => {
                body_of(message).is_some_and(|body| *body != request.body)
                    && any(&|version| wants(version) && !version.other_body_is_duplicate)
            }
            Said::Ignored => any(&|version| knows(version) && !version.wants(&request.event_type)),
            Said::NotVerified => any(&|version| !knows(version)),
            Said::NoSource => {
                let ended = url_has_ended && heard.at + SLOW_CHANGE >= rotated + Source::OLD_TOKEN_RETENTION;
                versions.contains(&None) || ended
            }
            Said::NotNow | Said::TookLong | Said::Nothing => true,
        };
        let is_late = url_has_ended && request.at >= rotated + Source::OLD_TOKEN_RETENTION;
        found.require(fits && !(is_late && heard.said.is_taken()), "answer", || {
            format!("{request:?}; the source was {versions:?}")
        });
    }
}

fn heard<'a>(inlets: &'a [Inlet<'a>]) -> impl Iterator<Item = (&'a Inlet<'a>, &'a InboundRequest, Heard)> {
    let all = inlets.iter().flat_map(|inlet| inlet.inbound.iter().map(move |request| (inlet, *request)));
    all.filter_map(|(inlet, request)| Some((inlet, request, request.heard?)))
}

impl Inlet<'_> {
    /// Whether a message has the name of the event that was sent.
    fn names(&self, message: &Message, request: &InboundRequest) -> bool {
        match self.plan.naming {
            Naming::ById => message.content.event_id.as_deref() == request.id.as_deref(),
            Naming::ByBody => message.content.payload == request.body,
            Naming::ByNothing => false,
        }
    }

    /// Whether a message is what was sent, byte by byte.
    fn is(&self, message: &Message, request: &InboundRequest) -> bool {
        let named =
            self.plan.naming != Naming::ById || message.content.event_id.as_deref() == request.id.as_deref();
        named && message.content.payload == request.body
    }

    /// What a message may have come from.
    fn origins(&self, message: &Message, accept: &AcceptCommit) -> Vec<&InboundRequest> {
        let sent = self.inbound.iter().copied().filter(|request| {
            request.key.is_some() && request.step < accept.step && self.is(message, request)
        });
        let (told, open): (Vec<_>, Vec<_>) = sent.partition(|request| {
            request.heard.is_some_and(|heard| heard.said == Said::New(Some(message.id)))
        });
        let is_open = |request: &&InboundRequest| {
            request.heard.is_none_or(|heard| heard.said.leaves_open() || heard.said == Said::New(None))
        };
        if told.is_empty() { open.into_iter().filter(is_open).collect() } else { told }
    }

    /// What it may have been while a request was answered.
    fn at_the_time(&self, request: &InboundRequest, heard: Heard) -> impl Iterator<Item = Option<&Version>> {
        let ends = self.versions.iter().skip(1).map(|(at, _)| Some(*at)).chain([None]);
        let spans = self.versions.iter().zip(ends);
        let meets = move |from: Timestamp, to: Option<Timestamp>| {
            from <= heard.at && to.is_none_or(|to| to + MAX_REPLY_DELAY >= request.at)
        };
        spans.filter(move |((from, _), to)| meets(*from, *to)).map(|((_, version), _)| *version)
    }
}
