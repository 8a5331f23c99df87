//! What stands between the worker and Aldaba, and can hold a request or its answer for ever.

use super::WAIT_TIMEOUT;
use super::http::Message;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Pass,
    /// A request gets as far as here.
    HoldRequests,
    /// A request gets to Aldaba; its answer gets as far as here.
    HoldAnswers,
    /// Nobody is there.
    HangUp,
}

pub(crate) struct Gate {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    rule: watch::Sender<(Rule, SocketAddr)>,
    requests: watch::Sender<usize>,
    held: watch::Sender<usize>,
}

impl Gate {
    pub(crate) async fn open(aldaba: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            rule: watch::Sender::new((Rule::Pass, aldaba)),
            requests: watch::Sender::new(0),
            held: watch::Sender::new(0),
        });
        let serving = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&serving)));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn rule(&self, rule: Rule) {
        self.shared.rule.send_modify(|now| now.0 = rule);
    }

    pub(crate) fn leads_to(&self, aldaba: SocketAddr) {
        self.shared.rule.send_modify(|now| now.1 = aldaba);
    }

    pub(crate) fn requests(&self) -> usize {
        *self.shared.requests.borrow()
    }

    /// Waits until this many requests have come in all.
    pub(crate) async fn has_seen(&self, count: usize) {
        let mut requests = self.shared.requests.subscribe();
        let seen = requests.wait_for(|requests| *requests >= count);
        timeout(WAIT_TIMEOUT, seen).await.expect("the worker never came").unwrap();
    }

    /// Waits until something is held.
    pub(crate) async fn holds(&self) {
        let mut held = self.shared.held.subscribe();
        timeout(WAIT_TIMEOUT, held.wait_for(|held| *held > 0))
            .await
            .expect("nothing came to be held")
            .unwrap();
    }
}

async fn serve(mut worker: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    while let Some(request) = Message::read(&mut worker).await? {
        shared.requests.send_modify(|requests| *requests += 1);
        let (rule, address) = *shared.rule.borrow();
        if rule == Rule::HangUp {
            return Ok(());
        }
        if rule == Rule::HoldRequests {
            hold(&shared).await;
        }
        let mut aldaba = TcpStream::connect(address).await?;
        aldaba.write_all(&request.bytes).await?;
        let Some(answer) = Message::read(&mut aldaba).await? else { return Ok(()) };
        if rule == Rule::HoldAnswers {
            hold(&shared).await;
        }
        worker.write_all(&answer.bytes).await?;
    }
    Ok(())
}

async fn hold(shared: &Shared) {
    shared.held.send_modify(|held| *held += 1);
    std::future::pending::<()>().await;
}
