//! Mails, at a real SMTP server.

mod kinds;
mod limits;
mod links;
mod outage;
mod servers;
mod settings;
mod stage;
mod texts_of_others;
