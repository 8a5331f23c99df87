//! Counted attempts.

use crate::sqlite::op::Reply;
use crate::sqlite::{Op, SqliteStore, statistics};
use crate::{ApplicationAttemptsQuery, AttemptCounts, Done, Hour, Read, Statistics, SumUp};
use aldaba_delivery::{EndpointId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Statistics for SqliteStore {
    fn endpoint_attempts(
        &self,
        endpoint: EndpointId,
        since: Timestamp,
        until: Timestamp,
    ) -> Read<AttemptCounts> {
        self.read(move |connection| statistics::endpoint_attempts(connection, endpoint, since, until))
    }

    fn application_attempts(
        &self,
        query: ApplicationAttemptsQuery,
    ) -> Read<Option<BTreeMap<String, AttemptCounts>>> {
        let types = Arc::clone(&self.types);
        self.read(move |connection| types.read(connection, &query))
    }

    fn summed_through(&self) -> Read<Hour> {
        self.read(statistics::hours_summed)
    }

    fn unsummed(&self, endpoints: Vec<EndpointId>, through: Hour) -> Read<Vec<EndpointId>> {
        self.read(move |connection| statistics::unsummed(connection, &endpoints, through))
    }

    fn sum_up(&self, step: SumUp, done: Done<usize>) {
        self.write(Op::SumUp(step), Reply::SumUp(done));
    }
}
