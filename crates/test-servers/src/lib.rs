//! Test only: a real PostgreSQL, a real Redis, a real nginx and a real SMTP server, on free ports, in temporary folders. They are gone when they are
//! dropped, and also when the test that started them is killed. `cargo xtask servers` installs them.

mod nginx;
mod postgres;
mod process;
mod redis;
mod smtp;

pub use nginx::Nginx;
pub use postgres::Postgres;
pub use process::{kill, pause, resume};
pub use redis::Redis;
pub use smtp::{Smtp, SmtpTls};
