//! Test only: a real PostgreSQL and a real Redis, on free ports, in temporary folders. They are gone when they are
//! dropped, and also when the test that started them is killed. `cargo xtask servers` installs them.

mod postgres;
mod process;
mod redis;

pub use postgres::Postgres;
pub use process::{kill, pause, resume};
pub use redis::Redis;
