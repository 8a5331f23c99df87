use tokio_postgres::{Client, NoTls, Row};

const SCHEMA: &str = include_str!("../schema.sql");
const CLEAN: &str = include_str!("../clean.sql");

/// A database with the shop's tables. Every question has a connection of its own, because the server may have been away.
#[derive(Clone, Debug)]
pub struct Tables {
    url: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub status: String,
    pub transaction: Option<String>,
    pub method: Option<String>,
    /// In UTC.
    pub paid_at: Option<String>,
    /// Whether it was changed since it was made.
    pub updated: bool,
}

impl Tables {
    pub async fn create(url: String) -> Self {
        let tables = Self { url };
        tables.run(SCHEMA).await;
        // It may run again.
        tables.run(SCHEMA).await;
        tables
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub async fn connect(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    pub async fn run(&self, statements: &str) {
        self.connect().await.batch_execute(statements).await.unwrap();
    }

    pub async fn add_order(&self, id: &str) {
        let insert = "INSERT INTO orders (id, amount, customer_name) VALUES ($1, 2599, 'Ann')";
        self.connect().await.execute(insert, &[&id]).await.unwrap();
    }

    pub async fn add_product(&self, id: &str, stock: i32) {
        let insert = "INSERT INTO products (id, name, stock) VALUES ($1, 'A door knocker', $2)";
        self.connect().await.execute(insert, &[&id, &stock]).await.unwrap();
    }

    /// As if it had never been paid, so that no guard holds.
    pub async fn forget_payment(&self, order: &str) {
        let update = "UPDATE orders SET status = 'pending', transaction_id = NULL WHERE id = $1";
        assert_eq!(self.connect().await.execute(update, &[&order]).await.unwrap(), 1);
    }

    pub async fn order(&self, id: &str) -> Order {
        let select = "SELECT status, transaction_id, payment_method, (paid_at AT TIME ZONE 'UTC')::text, \
                      updated_at > created_at \
                      FROM orders WHERE id = $1";
        let row = self.one(select, id).await;
        Order {
            status: row.get(0),
            transaction: row.get(1),
            method: row.get(2),
            paid_at: row.get(3),
            updated: row.get(4),
        }
    }

    pub async fn stock(&self, product: &str) -> i32 {
        self.one("SELECT stock FROM products WHERE id = $1", product).await.get(0)
    }

    /// How many marks an event has.
    pub async fn marks(&self, event: &str) -> i64 {
        self.one("SELECT COUNT(*) FROM webhook_events WHERE event_id = $1", event).await.get(0)
    }

    /// Type and error of an event whose work has failed, if that was noted.
    pub async fn failure(&self, event: &str) -> Option<(String, String)> {
        let select = "SELECT event_type, error FROM webhook_events_failures WHERE event_id = $1";
        let found = self.connect().await.query_opt(select, &[&event]).await.unwrap();
        found.map(|row| (row.get(0), row.get(1)))
    }

    /// How many marks there are, of all events, beside what the shop has.
    pub async fn everything(&self) -> (i64, i64, i64) {
        let select = "SELECT (SELECT COUNT(*) FROM webhook_events), \
                      (SELECT COUNT(*) FROM orders WHERE status = 'paid'), \
                      (SELECT COALESCE(SUM(stock), 0) FROM products)";
        let row = self.connect().await.query_one(select, &[]).await.unwrap();
        (row.get(0), row.get(1), row.get(2))
    }

    /// Removes old marks; how many there were.
    pub async fn clean(&self) -> u64 {
        self.connect().await.execute(CLEAN, &[]).await.unwrap()
    }

    async fn one(&self, select: &str, id: &str) -> Row {
        self.connect().await.query_one(select, &[&id]).await.unwrap()
    }
}
