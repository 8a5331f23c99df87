//! Every statement of the operations is prepared and run.

use crate::with_schema;
use aldaba_store::operations;
use aldaba_store::postgres;
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

/// What operations hand over.
const PARAMETERS: [Type; 3] = [Type::INT8, Type::TEXT, Type::BYTEA];
/// What operations read. A number that is written in a statement is an `INT4`.
const COLUMNS: [Type; 4] = [Type::INT8, Type::INT4, Type::TEXT, Type::BYTEA];

#[test]
fn postgresql_runs_every_statement_of_the_operations_with_their_types() {
    with_schema(async |mut client| {
        let (statements, mut wrong) = (operations::statements(), Vec::new());
        assert!(statements.len() > 250, "only {} statements", statements.len());
        for statement in statements {
            if let Err(why) = run(&mut client, &postgres::statement(statement.text())).await {
                wrong.push(format!("{statement:?}\n    {why}"));
            }
        }
        assert!(wrong.is_empty(), "{} statements:\n{}", wrong.len(), wrong.join("\n\n"));
    });
}

/// Runs a statement with zeros, in a transaction that is rolled back.
async fn run(client: &mut Client, text: &str) -> Result<(), String> {
    let transaction = client.transaction().await.unwrap();
    let prepared = transaction.prepare(text).await.map_err(|error| describe(&error))?;
    if let Some(wrong) = prepared.params().iter().find(|one| !PARAMETERS.contains(one)) {
        return Err(format!("a parameter is {wrong}, of {:?}", prepared.params()));
    }
    if let Some(wrong) = prepared.columns().iter().find(|one| !COLUMNS.contains(one.type_())) {
        return Err(format!("{} is {}", wrong.name(), wrong.type_()));
    }
    let zeros: Vec<&(dyn ToSql + Sync)> = prepared.params().iter().map(zero).collect();
    transaction.query(&prepared, &zeros).await.map(drop).map_err(|error| describe(&error))
}

fn zero(of: &Type) -> &'static (dyn ToSql + Sync) {
    match *of {
        Type::INT8 => &0_i64,
        Type::TEXT => &"",
        _ => &(&[] as &[u8]),
    }
}

fn describe(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string)
}
