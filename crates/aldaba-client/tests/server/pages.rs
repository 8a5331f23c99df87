//! Streams over pages.

use crate::proxy::{Fault, Proxy};
use crate::running::{Running, client_of};
use aldaba_client::{Error, MessageSearch, NewMessage, Order, Retries};
use futures_util::{StreamExt, TryStreamExt};
use serde_json::json;
use std::collections::{BTreeSet, HashSet};

const MESSAGES: usize = 300;

async fn with_messages() -> Running {
    let server = Running::start().await;
    server.application("acme").await;
    let all: Vec<_> = (0..MESSAGES).map(|n| NewMessage::new("a.b", json!({"n": n}))).collect();
    let sent = server.client.app("acme").messages().send_batch(&all).await.unwrap();
    assert_eq!(sent.accepted, MESSAGES);
    server
}

#[tokio::test]
async fn a_stream_gives_every_item_of_all_pages_once() {
    let server = with_messages().await;
    let messages = server.client.app("acme").messages();
    let all: Vec<_> = messages.list_all().try_collect().await.unwrap();
    let numbers: BTreeSet<_> =
        all.iter().filter_map(|message| message.payload.value()["n"].as_u64()).collect();
    assert_eq!((all.len(), numbers.len()), (MESSAGES, MESSAGES));
    // The same with small pages, and from a search.
    let small: Vec<_> = messages.list().limit(7).all().try_collect().await.unwrap();
    assert_eq!(small, all);
    let search = MessageSearch { with_content: Some(true), ..MessageSearch::default() };
    let found: Vec<_> = messages.search_all(&search).try_collect().await.unwrap();
    assert_eq!(found, all);
    server.stop().await;
}

#[tokio::test]
async fn a_stream_asks_for_a_page_only_when_it_is_needed_and_ends_with_an_error() {
    let server = with_messages().await;
    let proxy = Proxy::to(server.address).await;
    let messages = client_of(proxy.address).with_retries(Retries::none()).app("acme").messages();
    let mut stream = messages.list().limit(100).all();
    for _ in 0..100 {
        stream.next().await.unwrap().unwrap();
    }
    assert_eq!(proxy.seen().len(), 1);
    proxy.plan([Fault::CutRequest]);
    assert!(matches!(stream.next().await, Some(Err(Error::Unreachable { .. }))));
    assert!(stream.next().await.is_none());
    server.stop().await;
}

#[tokio::test]
async fn a_page_leads_to_those_beside_it() {
    let server = with_messages().await;
    let messages = server.client.app("acme").messages();
    let first = messages.list().limit(10).await.unwrap();
    assert!(!first.done);
    let second = messages.list().limit(10).from(first.iterator.clone().unwrap()).await.unwrap();
    let back = messages.list().limit(10).from(second.prev_iterator.clone().unwrap()).await.unwrap();
    assert_eq!(back.data, first.data);
    let ids: HashSet<_> = first.data.iter().chain(&second.data).map(|message| &message.id).collect();
    assert_eq!(ids.len(), 20);
    let error = messages.list().limit(0).await.unwrap_err();
    assert!(error.to_string().contains("query.limit"), "{error}");
    let newest = server.client.applications().list().order(Order::Descending).limit(1).await.unwrap();
    assert_eq!(newest.data[0].uid.as_deref(), Some("acme"));
    server.stop().await;
}

#[tokio::test]
async fn pages_in_a_cycle_end_with_an_error() {
    let server = Running::start().await;
    let proxy = Proxy::to(server.address).await;
    let pages = [
        r#"{"data":[],"iterator":"A","prevIterator":null,"done":false}"#,
        r#"{"data":[],"iterator":"B","prevIterator":null,"done":false}"#,
        r#"{"data":[],"iterator":"C","prevIterator":null,"done":false}"#,
    ];
    proxy.plan(pages.iter().cycle().take(30).map(|page| Fault::Answer(200, None, page)));
    let client = client_of(proxy.address).with_retries(Retries::none());
    let error = client.applications().list().all().try_next().await.unwrap_err();
    assert!(matches!(error, Error::Answer { status: 200, .. }), "{error:?}");
    assert!(error.to_string().contains("form a cycle"), "{error}");
    assert!(proxy.seen().len() < 30);
    let search = client.app("acme").messages().search_all(&MessageSearch::default()).try_next().await;
    assert!(matches!(search, Err(Error::Answer { status: 200, .. })), "{search:?}");
    server.stop().await;
}
