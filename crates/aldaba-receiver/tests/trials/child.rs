//! The process that receives, and is killed.

use super::pausing::{Pausing, Point, here};
use super::{Trial, hasty::Hasty, sender};
use aldaba_receiver::{Event, Ledger, Receiver, Transaction};
use axum::Router;
use axum::routing::post;
use std::io::Read;

/// What tells a child what it is: the ledger's name, where it is, and whether it is the hasty one.
pub(crate) const NAME: &str = "ALDABA_TRIAL_LEDGER";
pub(crate) const PLACE: &str = "ALDABA_TRIAL_PLACE";
pub(crate) const HASTY: &str = "ALDABA_TRIAL_HASTY";

/// What it says when it can be reached, before its port.
pub(crate) const LISTENING: &str = "listening on ";

pub(crate) fn told() -> (String, String) {
    let told = |name| std::env::var(name).expect("a child is started by another test");
    (told(NAME), told(PLACE))
}

pub(crate) fn serve<T: Trial>(place: &str) {
    end_with_the_parent();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let ledger = T::open(place).await;
        match std::env::var_os(HASTY) {
            Some(_) => receive::<T, _>(Pausing(Hasty(ledger))).await,
            None => receive::<T, _>(Pausing(ledger)).await,
        }
    });
}

/// However that ends, this process's input does too.
fn end_with_the_parent() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
}

async fn receive<T, L>(ledger: Pausing<L>)
where
    T: Trial,
    L: Ledger<Work = <T::Ledger as Ledger>::Work>,
{
    let receiver = Receiver::builder(sender::inspector(), ledger).build();
    let app = Router::new().route("/", post(handle::<T, L>).layer(receiver.layer()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{LISTENING}{}", listener.local_addr().unwrap().port());
    axum::serve(listener, app).await.unwrap();
}

async fn handle<T, L>(event: Event, mut transaction: Transaction<Pausing<L>>)
where
    T: Trial,
    L: Ledger<Work = <T::Ledger as Ledger>::Work>,
{
    let asked = Point::of(&event);
    here(Point::Claimed, asked).await;
    T::write(&mut transaction.inner, &event.id).await;
    here(Point::HalfDone, asked).await;
    T::count(&mut transaction.inner).await;
}
