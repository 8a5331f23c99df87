//! One request over one connection, whichever protocol it speaks.

use super::connect::{self, in_time};
use super::exchange::{Exchanged, Interrupted, exchange};
use super::lines::Slot;
use super::multiplex::Line;
use super::pool::Loan;
use super::redirect::Hop;
use super::route::Route;
use super::stream::Stream;
use super::target::Target;
use super::{Inner, moment_in};
use aldaba_delivery::policy::Timeouts;
use aldaba_delivery::{Failure, FailureKind};
use bytes::Bytes;
use tokio::time::{Instant, timeout_at};

/// How many shared connections one request may be given to, as long as it is certain that none of the
/// former has been processed.
const MOST_TRIES: usize = 3;

/// Where a request goes and by when.
pub(super) struct Delivery<'a> {
    pub(super) hop: &'a Hop,
    pub(super) target: &'a Target<'a>,
    pub(super) timeouts: Timeouts,
    pub(super) end: Instant,
}

/// What was found or made for a request that would like HTTP/2.
enum Way {
    Shared(Slot),
    /// The receiver chose HTTP/1.1.
    Alone(Loan),
}

impl Delivery<'_> {
    fn connected_by(&self) -> Instant {
        self.end.min(moment_in(self.timeouts.connect))
    }

    fn answered_by(&self) -> Instant {
        self.end.min(moment_in(self.timeouts.answer))
    }
}

impl Inner {
    pub(super) async fn deliver(&self, delivery: &Delivery<'_>, body: Bytes) -> Result<Exchanged, Failure> {
        let route = Route::of(delivery.hop, delivery.target);
        if route.http2 {
            return self.deliver_shared(delivery, body, &route).await;
        }
        if let Some(waiting) = self.pool.take(&route) {
            match self.over(waiting, delivery, body.clone(), &route).await {
                // The receiver closed it in the very moment and has seen nothing of the request.
                // This is the only case in which a second connection may carry it.
                Err(Interrupted { unsent: true, .. }) => {}
                Err(interrupted) => return Err(interrupted.failure),
                Ok(exchanged) => return Ok(exchanged),
            }
        }
        let fresh = self.pool.adopt(self.connect(delivery, false, delivery.connected_by()).await?);
        let exchanged = self.over(fresh, delivery, body, &route).await;
        exchanged.map_err(|interrupted| interrupted.failure)
    }

    async fn deliver_shared(
        &self,
        delivery: &Delivery<'_>,
        body: Bytes,
        route: &Route,
    ) -> Result<Exchanged, Failure> {
        let mut tries = 0;
        loop {
            tries += 1;
            let result = match self.way(delivery, route).await? {
                Way::Shared(slot) => self.along(&slot, delivery, body.clone()).await,
                Way::Alone(loan) => self.over(loan, delivery, body.clone(), route).await,
            };
            match result {
                Ok(exchanged) => return Ok(exchanged),
                Err(Interrupted { unsent: true, .. }) if tries < MOST_TRIES => {}
                Err(interrupted) => return Err(interrupted.failure),
            }
        }
    }

    /// A connection for a request that would like HTTP/2. One at a time connects, the others wait and
    /// share what it has made.
    async fn way(&self, delivery: &Delivery<'_>, route: &Route) -> Result<Way, Failure> {
        let by = delivery.connected_by();
        if let Some(slot) = self.lines.take(route) {
            return Ok(Way::Shared(slot));
        }
        if self.lines.speaks_http1(route) {
            return match self.pool.take(route) {
                Some(waiting) => Ok(Way::Alone(waiting)),
                None => self.new_way(delivery, route, by).await,
            };
        }
        let gate = self.lines.gate(route);
        let waiting = async { Ok(gate.lock.lock().await) };
        let _turn = in_time(by, "waiting for the connection of another request", waiting).await?;
        match self.lines.take(route) {
            Some(slot) => Ok(Way::Shared(slot)),
            None => self.new_way(delivery, route, by).await,
        }
    }

    async fn new_way(&self, delivery: &Delivery<'_>, route: &Route, by: Instant) -> Result<Way, Failure> {
        let stream = self.connect(delivery, true, by).await?;
        if !stream.is_http2() {
            self.lines.note_http1(route);
            return Ok(Way::Alone(self.pool.adopt(stream)));
        }
        let line = in_time(by, "the HTTP/2 handshake", Line::open(stream)).await?;
        Ok(Way::Shared(self.lines.add(route, line)))
    }

    async fn connect(&self, delivery: &Delivery<'_>, http2: bool, by: Instant) -> Result<Stream, Failure> {
        let identity = delivery.hop.identity.as_deref();
        let stream = self.connector.connect(delivery.target, http2, identity, by).await;
        if stream.as_ref().is_err_and(connect::is_shortage) {
            // The idle ones are ours to give.
            self.pool.clear();
            self.lines.clear();
        }
        stream
    }

    /// Over a connection that others use as well.
    async fn along(
        &self,
        slot: &Slot,
        delivery: &Delivery<'_>,
        body: Bytes,
    ) -> Result<Exchanged, Interrupted> {
        let exchange = slot.line.exchange(delivery.hop.http2_head(body.len())?, body);
        match timeout_at(delivery.answered_by(), exchange).await {
            Ok(Ok(exchanged)) => Ok(exchanged),
            Ok(Err(interrupted)) => {
                if interrupted.unsent || !slot.line.is_open() {
                    slot.retire();
                }
                Err(interrupted)
            }
            Err(_) => {
                // Perhaps the way to the receiver is dead: the next request finds out on a new one.
                slot.retire();
                Err(late().into())
            }
        }
    }

    /// Over a connection of its own.
    async fn over(
        &self,
        loan: Loan,
        delivery: &Delivery<'_>,
        body: Bytes,
        route: &Route,
    ) -> Result<Exchanged, Interrupted> {
        let Loan { stream, born } = loan;
        let exchange = exchange(stream, delivery.hop.request(body)?);
        let mut exchanged = match timeout_at(delivery.answered_by(), exchange).await {
            Ok(exchanged) => exchanged?,
            Err(_) => return Err(late().into()),
        };
        if let Some(stream) = exchanged.reusable.take() {
            self.pool.put_back(route.clone(), Loan { stream, born });
        }
        Ok(exchanged)
    }
}

fn late() -> Failure {
    Failure { kind: FailureKind::Timeout, detail: "no complete answer in time".into() }
}
