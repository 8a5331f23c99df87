//! Backups and restores, as an operator makes them: real processes, real folders.

mod backups;
mod black_box;
