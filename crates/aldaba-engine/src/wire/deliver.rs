//! Sends one request over one connection, by HTTP/1.1 or HTTP/2.

use super::connect;
use super::deadline::{not_answered, with_deadline};
use super::http1::{ExchangeError, ExchangeResponse, exchange};
use super::http2::{Http2Connection, StageCell};
use super::pool::PooledStream;
use super::pool::StreamPermit;
use super::pool::{Assignment, ConnectPermit};
use super::progress::ExchangeStage;
use super::redirect::Hop;
use super::route::Route;
use super::stream::WireStream;
use super::target::WireTarget;
use super::{WireState, instant_after};
use aldaba_delivery::AttemptFailure;
use aldaba_delivery::policy::Timeouts;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How many shared connections one request may try, as long as it is certain that no earlier one processed
/// it.
const MAX_SHARED_ATTEMPTS: usize = 3;

/// One request: its target and its deadlines.
pub(super) struct HopDelivery<'a> {
    pub(super) hop: &'a Hop,
    pub(super) target: &'a WireTarget<'a>,
    pub(super) timeouts: Timeouts,
    /// Extended by the time that the request waited in a queue of ours: that time is not the receiver's.
    pub(super) deadline: Instant,
    /// The time spent in that queue, at most the policy's connect timeout.
    pub(super) waited: Duration,
}

/// A connection for a request that prefers HTTP/2.
enum PooledConnection {
    Http2(StreamPermit),
    /// The receiver chose HTTP/1.1.
    Http1(PooledStream),
}

impl HopDelivery<'_> {
    fn connect_deadline(&self) -> Instant {
        self.deadline.min(instant_after(self.timeouts.connect))
    }

    fn answer_deadline(&self) -> Instant {
        self.deadline.min(instant_after(self.timeouts.answer))
    }

    /// Waits in a queue for at most what is left of the connect timeout. The error is the moment at which that ran out.
    async fn wait_in_queue<T>(&mut self, waiting: impl Future<Output = T>) -> Result<T, Instant> {
        let from = instant_after(Duration::ZERO);
        let deadline = from + self.timeouts.connect.saturating_sub(self.waited);
        let outcome = timeout_at(deadline, waiting).await;
        let waited = instant_after(Duration::ZERO).saturating_duration_since(from);
        self.waited += waited;
        self.deadline += waited;
        outcome.map_err(|_| deadline)
    }
}

impl WireState {
    pub(super) async fn deliver(
        &self,
        delivery: &mut HopDelivery<'_>,
        body: Bytes,
    ) -> Result<ExchangeResponse, AttemptFailure> {
        let route = Route::of(delivery.hop, delivery.target);
        if route.http2 {
            return self.deliver_shared(delivery, body, &route).await;
        }
        if let Some(waiting) = self.http1_pool.take(&route) {
            match self.exchange_http1(waiting, delivery, body.clone(), &route).await {
                // The receiver closed it at the same moment and has seen nothing of the request. This is the
                // only case in which a second connection may carry it.
                Err(ExchangeError { unsent: true, .. }) => {}
                Err(interrupted) => return Err(interrupted.failure),
                Ok(exchanged) => return Ok(exchanged),
            }
        }
        let fresh = self.http1_pool.adopt(self.connect(delivery, false, delivery.connect_deadline()).await?);
        let exchanged = self.exchange_http1(fresh, delivery, body, &route).await;
        exchanged.map_err(|interrupted| interrupted.failure)
    }

    async fn deliver_shared(
        &self,
        delivery: &mut HopDelivery<'_>,
        body: Bytes,
        route: &Route,
    ) -> Result<ExchangeResponse, AttemptFailure> {
        let mut tries = 0;
        loop {
            tries += 1;
            let result = match self.pick_connection(delivery, route).await? {
                PooledConnection::Http2(permit) => self.exchange_http2(&permit, delivery, body.clone()).await,
                PooledConnection::Http1(pooled) => {
                    self.exchange_http1(pooled, delivery, body.clone(), route).await
                }
            };
            match result {
                Ok(exchanged) => return Ok(exchanged),
                Err(ExchangeError { unsent: true, .. }) if tries < MAX_SHARED_ATTEMPTS => {}
                Err(interrupted) => return Err(interrupted.failure),
            }
        }
    }

    /// Picks a connection for a request that prefers HTTP/2. Only as many requests as necessary connect; the
    /// others wait and share the result.
    async fn pick_connection(
        &self,
        delivery: &mut HopDelivery<'_>,
        route: &Route,
    ) -> Result<PooledConnection, AttemptFailure> {
        if let Some(permit) = self.http2_pool.take(route) {
            return Ok(PooledConnection::Http2(permit));
        }
        if self.http2_pool.speaks_http1(route) {
            return self.http1_connection(delivery, route).await;
        }
        let mut queued = self.http2_pool.join(route, delivery.timeouts.connect);
        match delivery.wait_in_queue(&mut queued.assignment).await {
            Ok(Ok(Assignment::Http2(permit))) => Ok(PooledConnection::Http2(permit)),
            Ok(Ok(Assignment::Connect(connecting))) => {
                self.connect_for_queue(delivery, route, connecting).await
            }
            Ok(Ok(Assignment::Http1)) => self.http1_connection(delivery, route).await,
            Ok(Ok(Assignment::Failed(failure))) => Err(failure),
            // The pool answers every queued request, so this does not happen.
            Ok(Err(_)) => Err(not_answered(delivery.deadline, ExchangeStage::Queued)),
            // The receiver accepts connections, but there were not enough of them: a local limit.
            Err(deadline) if self.http2_pool.has_progressed(route, &queued) => {
                Err(not_answered(deadline, ExchangeStage::Queued))
            }
            Err(deadline) => {
                Err(self.connector.not_connected(&delivery.target.host, deadline, "connecting").await)
            }
        }
    }

    /// A connection to a receiver that chose HTTP/1.1 the last time.
    async fn http1_connection(
        &self,
        delivery: &HopDelivery<'_>,
        route: &Route,
    ) -> Result<PooledConnection, AttemptFailure> {
        if let Some(waiting) = self.http1_pool.take(route) {
            return Ok(PooledConnection::Http1(waiting));
        }
        let deadline = delivery.connect_deadline();
        let stream = self.connect(delivery, true, deadline).await?;
        if !stream.is_http2() {
            return Ok(PooledConnection::Http1(self.http1_pool.adopt(stream)));
        }
        // The receiver now chooses HTTP/2, so the connection can be shared.
        let connection =
            with_deadline(deadline, "the HTTP/2 handshake", Http2Connection::open(stream)).await?;
        Ok(PooledConnection::Http2(self.http2_pool.add(route, None, connection)))
    }

    /// Opens a connection that queued requests share, and reports a failure to them.
    async fn connect_for_queue(
        &self,
        delivery: &HopDelivery<'_>,
        route: &Route,
        connecting: ConnectPermit,
    ) -> Result<PooledConnection, AttemptFailure> {
        let now = instant_after(Duration::ZERO);
        let connect_time = delivery.timeouts.connect.min(delivery.deadline.saturating_duration_since(now));
        let deadline = now + connect_time;
        let made = async {
            let stream = self.connect(delivery, true, deadline).await?;
            if !stream.is_http2() {
                return Ok(Err(stream));
            }
            with_deadline(deadline, "the HTTP/2 handshake", Http2Connection::open(stream)).await.map(Ok)
        };
        match made.await {
            Ok(Ok(connection)) => {
                Ok(PooledConnection::Http2(self.http2_pool.add(route, Some(connecting), connection)))
            }
            Ok(Err(stream)) => {
                self.http2_pool.note_http1(route);
                // Queued requests need not wait any longer.
                drop(connecting);
                Ok(PooledConnection::Http1(self.http1_pool.adopt(stream)))
            }
            Err(failure) => {
                connecting.failed(&failure, connect_time);
                Err(failure)
            }
        }
    }

    async fn connect(
        &self,
        delivery: &HopDelivery<'_>,
        http2: bool,
        deadline: Instant,
    ) -> Result<WireStream, AttemptFailure> {
        let identity = delivery.hop.identity.as_deref();
        let stream = self.connector.connect(delivery.target, http2, identity, deadline).await;
        if stream.as_ref().is_err_and(connect::is_local_exhaustion) {
            // Idle connections hold sockets that the new one needs.
            self.http1_pool.clear();
            self.http2_pool.clear();
        }
        stream
    }

    /// Sends over a shared HTTP/2 connection.
    async fn exchange_http2(
        &self,
        permit: &StreamPermit,
        delivery: &HopDelivery<'_>,
        body: Bytes,
    ) -> Result<ExchangeResponse, ExchangeError> {
        let stage = StageCell::default();
        let exchange = permit.connection.exchange(delivery.hop.http2_head(body.len())?, body, &stage);
        let deadline = delivery.answer_deadline();
        match timeout_at(deadline, exchange).await {
            Ok(Ok(exchanged)) => Ok(exchanged),
            Ok(Err(interrupted)) => {
                if interrupted.unsent || interrupted.hostile || !permit.connection.is_open() {
                    permit.retire();
                }
                Err(interrupted)
            }
            Err(_) => {
                // The connection may be dead: the next request opens a new one.
                permit.retire();
                Err(not_answered(deadline, stage.get()).into())
            }
        }
    }

    /// Sends over an HTTP/1.1 connection that this request has for itself.
    async fn exchange_http1(
        &self,
        pooled: PooledStream,
        delivery: &HopDelivery<'_>,
        body: Bytes,
        route: &Route,
    ) -> Result<ExchangeResponse, ExchangeError> {
        let PooledStream { stream, created_tick } = pooled;
        let progress = Arc::clone(stream.progress());
        let exchange = exchange(stream, delivery.hop.request(body)?);
        let deadline = delivery.answer_deadline();
        let mut exchanged = match timeout_at(deadline, exchange).await {
            Ok(exchanged) => exchanged?,
            Err(_) => return Err(not_answered(deadline, progress.stage()).into()),
        };
        if let Some(stream) = exchanged.reusable.take() {
            self.http1_pool.put_back(route.clone(), PooledStream { stream, created_tick });
        }
        Ok(exchanged)
    }
}
