//! Deliveries, by where they stand.

use crate::sqlite::op::Reply;
use crate::sqlite::{Op, SqliteStore, deliveries, delivery_list};
use crate::{AuditEntry, Deliveries, DeliveriesPage, DeliveriesQuery, DeliveryView, Done, Read, Seq};
use aldaba_delivery::AppId;
use std::sync::Arc;

impl Deliveries for SqliteStore {
    fn delivery_views(&self, app: AppId, seqs: Vec<Seq>) -> Read<Vec<DeliveryView>> {
        self.read(move |connection| deliveries::views(connection, app, &seqs))
    }

    fn delivery_list(&self, query: DeliveriesQuery) -> Read<DeliveriesPage> {
        self.read(move |connection| delivery_list::list(connection, &query))
    }

    fn discard(&self, app: AppId, deliveries: Vec<Seq>, audit: Option<Arc<AuditEntry>>, done: Done<usize>) {
        self.write(Op::Discard { app, deliveries, audit }, Reply::Discard(done));
    }
}
