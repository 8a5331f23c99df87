//! What a server keeps in memory.

mod black_box;

use aldaba::config::Config;
use aldaba::server::{Server, Threads, listen};
use aldaba::{DEFAULT_ORGANIZATION, JwtSecret, issue_token};
use aldaba_delivery::Timestamp;
use black_box::{Client, free_address, token, wait_at_most};
use std::alloc::{GlobalAlloc, Layout, System};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Making the API's document takes several times this.
const DOCUMENT_KIB: u64 = 3 * 1024;
const APPLICATIONS: usize = 500;
/// What is kept in any case is there after these rounds.
const ROUNDS_TO_FILL: usize = 2;
const MORE_ROUNDS: usize = 4;
/// A leak of less than a hundred bytes would be more.
const MAX_BYTES_PER_APPLICATION: usize = 64;

/// The bytes that the Rust code of this process has in use: neither caches of the allocator nor those of SQLite are in it.
static IN_USE: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

struct Counting;

#[expect(unsafe_code, reason = "an allocator is unsafe, and nothing else knows what is in use")]
// SAFETY: the system's allocator does all of it; only numbers are added up.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[test]
fn the_api_document_is_made_when_it_is_asked_for_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = free_address();
    let token = token(folder.path());
    let server = black_box::Server::start(folder.path(), address);
    let mut client = Client::connect(address, &token).expect("the server listens");
    assert_eq!(client.get("/app").expect("an answer").status, 200);
    let before = server.memory_kib("VmHWM");
    assert_eq!(client.get("/openapi.json").expect("an answer").status, 200);
    let first = server.memory_kib("VmHWM");
    assert!(
        first >= before + DOCUMENT_KIB,
        "{before} KiB before, {first} KiB after: was it made at the start?"
    );
    assert_eq!(client.get("/openapi.json").expect("an answer").status, 200);
    let second = server.memory_kib("VmHWM");
    assert!(second < first + DOCUMENT_KIB / 3, "{first} KiB, then {second} KiB: it is made once");
}

/// A server in this process.
async fn serve(folder: &std::path::Path, secret: JwtSecret) -> SocketAddr {
    let mut config = Config { jwt_secret: Some(secret), ..Config::default() };
    config.store.folder = folder.join("data");
    config.store.queue_wait = Duration::from_secs(30);
    let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let server = Server::start(listener, config).await.expect("it starts");
    let address = server.address();
    tokio::spawn(server.run(Threads::one(), std::future::pending()));
    address
}

#[test]
fn applications_that_were_made_and_deleted_leave_nothing_in_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let secret = || JwtSecret::new("the secret of the tests, long enough").expect("a secret");
    let address = runtime.block_on(serve(folder.path(), secret()));
    let organization = DEFAULT_ORGANIZATION.parse().expect("an id");
    let token = issue_token(&secret(), organization, Timestamp::from_millis(1_750_000_000_000));
    let mut client = Client::connect(address, &token).expect("the server listens");
    let mut round = || {
        let mut made = Vec::new();
        for number in 0..APPLICATIONS {
            let answer =
                client.post("/app", None, &format!(r#"{{"name": "a {number}"}}"#)).expect("an answer");
            assert_eq!(answer.status, 201, "{}", answer.body);
            made.push(answer.body["id"].as_str().expect("an id").to_owned());
        }
        for app in &made {
            assert_eq!(client.delete(&format!("/app/{app}")).expect("an answer").status, 204);
        }
    };
    (0..ROUNDS_TO_FILL).for_each(|_| round());
    // Its tasks may be busy with the last of them.
    std::thread::sleep(Duration::from_secs(2));
    let filled = IN_USE.load(Ordering::Relaxed);
    (0..MORE_ROUNDS).for_each(|_| round());
    let limit = filled + MORE_ROUNDS * APPLICATIONS * MAX_BYTES_PER_APPLICATION;
    let in_use = || IN_USE.load(Ordering::Relaxed);
    assert!(wait_at_most(Duration::from_secs(20), || in_use() < limit), "{filled} bytes, then {}", in_use());
    runtime.shutdown_background();
}
