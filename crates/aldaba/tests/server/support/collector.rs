//! A collector of traces that reads as much of OTLP as the tests need. The official schema decodes the same in
//! `sdks/traces`.

use crate::support::receiver::Receiver;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) struct Collector {
    pub(crate) receiver: Receiver,
    pub(crate) spans: Vec<ReceivedSpan>,
    /// The bodies as they came.
    pub(crate) bodies: Vec<Bytes>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedSpan {
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty: none.
    pub(crate) parent: String,
    pub(crate) name: String,
    /// 1: internal, 2: server, 3: client.
    pub(crate) kind: u64,
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) failed: bool,
    /// The spans that it is linked with, each with its trace.
    pub(crate) links: Vec<(String, String)>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let receiver = Receiver::answering(200, "").await;
        Self { receiver, spans: Vec::new(), bodies: Vec::new() }
    }

    pub(crate) fn url(&self) -> String {
        self.receiver.url("")
    }

    /// Reads until this many spans of a message are there, and returns them in the order of their beginnings.
    pub(crate) async fn spans_of(&mut self, message: &str, count: usize) -> Vec<ReceivedSpan> {
        loop {
            let mut found: Vec<_> =
                self.of_messages().into_iter().filter(|span| span.message() == Some(message)).collect();
            if found.len() >= count {
                assert_eq!(found.len(), count, "{found:#?}");
                found.sort_by_key(|span| span.begun);
                return found;
            }
            self.next().await;
        }
    }

    /// Reads until there is a span of a request to this route.
    pub(crate) async fn request(&mut self, route: &str) -> ReceivedSpan {
        loop {
            if let Some(span) = self.spans.iter().find(|span| span.kind == 2 && span.name == route) {
                return span.clone();
            }
            self.next().await;
        }
    }

    /// The spans of messages. Requests that change something else have spans too.
    pub(crate) fn of_messages(&self) -> Vec<ReceivedSpan> {
        self.spans.iter().filter(|span| span.message().is_some()).cloned().collect()
    }

    async fn next(&mut self) {
        let arrival = self.receiver.next().await;
        assert_eq!(arrival.path, "/v1/traces");
        assert_eq!(arrival.headers["content-type"], "application/x-protobuf");
        self.keep(arrival.body);
    }

    /// Reads what has come and what comes within this time.
    pub(crate) async fn all_within(&mut self, time: Duration) {
        tokio::time::sleep(time).await;
        for arrival in self.receiver.all_there() {
            self.keep(arrival.body);
        }
    }

    fn keep(&mut self, body: Bytes) {
        for resource in messages(&fields(&body), 1) {
            let names: Vec<_> =
                messages(&resource, 1).iter().flat_map(|resource| attributes(resource, 1)).collect();
            assert!(names.contains(&("service.name".into(), "aldaba".into())), "{names:?}");
            for scope in messages(&resource, 2) {
                self.spans.extend(messages(&scope, 2).iter().map(span));
            }
        }
        self.bodies.push(body);
    }
}

impl ReceivedSpan {
    fn message(&self) -> Option<&str> {
        self.attributes.get("aldaba.message.id").map(String::as_str)
    }
}

fn hex_of(fields: &Fields<'_>, number: u64) -> String {
    bytes(fields, number).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn span(fields: &Fields<'_>) -> ReceivedSpan {
    let hex = |number| hex_of(fields, number);
    ReceivedSpan {
        trace: hex(1),
        id: hex(2),
        parent: hex(4),
        name: text(fields, 5),
        kind: number(fields, 6),
        begun: number(fields, 7),
        ended: number(fields, 8),
        attributes: attributes(fields, 9).into_iter().collect(),
        links: messages(fields, 13).iter().map(|link| (hex_of(link, 1), hex_of(link, 2))).collect(),
        failed: messages(fields, 15).first().is_some_and(|status| number(status, 3) == 2),
    }
}

fn attributes(of: &Fields<'_>, field: u64) -> Vec<(String, String)> {
    let value = |pair: &Fields<'_>| {
        let any = messages(pair, 2).remove(0);
        let has_text = any.iter().any(|(number, _)| *number == 1);
        if has_text { text(&any, 1) } else { number(&any, 3).to_string() }
    };
    messages(of, field).iter().map(|pair| (text(pair, 1), value(pair))).collect()
}

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

type Fields<'a> = Vec<(u64, Field<'a>)>;

fn fields(mut encoded: &[u8]) -> Fields<'_> {
    let mut fields = Vec::new();
    while !encoded.is_empty() {
        let key = varint(&mut encoded);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut encoded)),
            1 => Field::Number(u64::from_le_bytes(take(&mut encoded, 8).try_into().unwrap())),
            2 => {
                let length = varint(&mut encoded);
                Field::Bytes(take(&mut encoded, usize::try_from(length).unwrap()))
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

fn varint(encoded: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = take(encoded, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

fn take<'a>(encoded: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = encoded.split_at(count);
    *encoded = rest;
    taken
}

fn messages<'a>(of: &Fields<'a>, number: u64) -> Vec<Fields<'a>> {
    let wanted = of.iter().filter(|(field, _)| *field == number);
    wanted
        .map(|(_, field)| match field {
            Field::Bytes(bytes) => fields(bytes),
            Field::Number(_) => panic!("field {number} is a number"),
        })
        .collect()
}

fn bytes<'a>(of: &Fields<'a>, number: u64) -> &'a [u8] {
    of.iter()
        .find_map(|(field, value)| match value {
            Field::Bytes(bytes) if *field == number => Some(*bytes),
            _ => None,
        })
        .unwrap_or_default()
}

fn text(of: &Fields<'_>, number: u64) -> String {
    String::from_utf8(bytes(of, number).to_vec()).unwrap()
}

fn number(of: &Fields<'_>, number: u64) -> u64 {
    of.iter()
        .find_map(|(field, value)| match value {
            Field::Number(value) if *field == number => Some(*value),
            _ => None,
        })
        .unwrap_or_default()
}
