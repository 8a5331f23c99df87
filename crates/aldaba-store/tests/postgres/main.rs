//! The operations and the schema on a real PostgreSQL.

mod catalogue;
mod schema;
mod statements;

use aldaba_store::postgres::SCHEMA;
use test_servers::Postgres;
use tokio_postgres::{Client, NoTls};

/// Runs a test on a PostgreSQL that has the schema and no rows.
fn with_schema(test: impl AsyncFnOnce(Client)) {
    let server = Postgres::shared();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&server.database(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(SCHEMA).await.unwrap();
        test(client).await;
    });
}
