//! Mails, at a real SMTP server.

mod conversation;
mod given_up;
mod kinds;
mod limits;
mod links;
mod operator;
mod outage;
mod servers;
mod settings;
mod stage;
mod texts_of_others;
