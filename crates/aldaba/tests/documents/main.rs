//! The documents that asked for all this, walked through line by line: the API and the engine as they
//! run, on a simulated clock, and what the receivers see on the wire. The names of the cases begin
//! with the ids of what was asked.

mod document_a;
mod document_b;
mod document_b_stop_dates;
mod document_c;
mod document_d;
mod document_e;
mod shortages;
mod stage;
