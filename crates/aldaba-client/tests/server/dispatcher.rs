//! The dispatcher, against the real server.

use crate::running::Running;
use aldaba_client::{Dispatched, Dispatcher, Job, JobStatus};

#[tokio::test]
async fn without_a_url_nothing_happens_and_nothing_is_asked() {
    let server = Running::start().await;
    let client = crate::running::client_of(crate::running::free_address());
    let dispatcher = Dispatcher::builder(client, "acme").build();
    for webhook_url in [None, Some(String::new())] {
        let job = Job { id: "1".into(), job_type: "a".into(), webhook_url };
        assert!(matches!(
            dispatcher.dispatch(&job, JobStatus::Completed, None, None).await,
            Dispatched::NoUrl
        ));
    }
    assert_eq!(dispatcher.stats(), Default::default());
    server.stop().await;
}
