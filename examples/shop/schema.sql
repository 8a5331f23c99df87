-- What the samples keep in PostgreSQL. It may run again: `psql "$DATABASE_URL" --file schema.sql`.

-- The events that were handled, the same table as that of the Rust library `aldaba-receiver`: receivers in several
-- languages can share it. A mark is made in the transaction of the work, so that both come true or neither.
CREATE TABLE IF NOT EXISTS webhook_events (
    event_id VARCHAR(255) PRIMARY KEY,
    event_type VARCHAR(100) NOT NULL,
    payload JSONB NOT NULL,
    processed_at TIMESTAMP NOT NULL DEFAULT timezone('utc', now()),
    created_at TIMESTAMP NOT NULL DEFAULT timezone('utc', now())
);

-- For the removal of old marks: clean.sql.
CREATE INDEX IF NOT EXISTS idx_webhook_events_processed_at ON webhook_events (processed_at);

-- The events whose work has failed, with the last error of each. A row here is no mark: the next copy is handled.
CREATE TABLE IF NOT EXISTS webhook_events_failures (
    event_id VARCHAR(255) PRIMARY KEY,
    event_type VARCHAR(100) NOT NULL,
    error TEXT NOT NULL,
    failed_at TIMESTAMP NOT NULL DEFAULT timezone('utc', now())
);
CREATE INDEX IF NOT EXISTS idx_webhook_events_failures_failed_at ON webhook_events_failures (failed_at);

CREATE TABLE IF NOT EXISTS orders (
    id VARCHAR(255) PRIMARY KEY,
    status VARCHAR(50) NOT NULL DEFAULT 'pending',
    amount INTEGER NOT NULL, -- in cents
    customer_email VARCHAR(255),
    customer_name VARCHAR(255) NOT NULL,
    transaction_id VARCHAR(255),
    payment_method VARCHAR(50),
    paid_at TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),
    updated_at TIMESTAMPTZ NOT NULL DEFAULT NOW()
);

-- One payment pays one order, whatever comes.
CREATE UNIQUE INDEX IF NOT EXISTS idx_orders_transaction_id ON orders (transaction_id) WHERE transaction_id IS NOT NULL;

CREATE TABLE IF NOT EXISTS products (
    id VARCHAR(255) PRIMARY KEY,
    name VARCHAR(255) NOT NULL,
    stock INTEGER NOT NULL CHECK (stock >= 0)
);
