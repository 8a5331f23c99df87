//! Exports of applications, and their erasure.

use crate::Error;
use crate::api::applications::App;
use crate::call::Call;
use crate::transport::OpenAnswer;
use aldaba_api::{BackgroundTask, Erase, ErasureCount, Timestamp, input};
use bytes::{Bytes, BytesMut};
use serde_json::Value;
use std::time::Duration;

/// How long the client waits for the next piece of an export.
const PIECE_TIMEOUT: Duration = Duration::from_secs(120);
/// The longest line, in bytes. The largest payload fits, with every character escaped.
const MAX_LINE_BYTES: usize = 128 << 20;

input! {
    /// What is exported.
    ExportOptions {
        /// Only messages that were accepted from this moment on.
        after: Option<Timestamp>,
        /// Only messages that were accepted before this moment.
        before: Option<Timestamp>,
        /// With signing secrets and the values of headers.
        secrets: Option<bool>,
    }
}

/// An export that is being read, line by line.
#[derive(Debug)]
pub struct Export {
    answer: OpenAnswer,
    /// What was read and is no line yet.
    rest: BytesMut,
    /// How much of it has no end of a line.
    searched: usize,
    last: Bytes,
}

impl Export {
    /// The next line, without its end. `None`: the export is complete. One that ends without its summary was cut off, and is an
    /// error.
    pub async fn line(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(end) = self.rest[self.searched..].iter().position(|byte| *byte == b'\n') {
                let mut line = self.rest.split_to(self.searched + end + 1);
                self.searched = 0;
                line.truncate(line.len() - 1);
                self.last = line.freeze();
                return Ok(Some(self.last.clone()));
            }
            self.searched = self.rest.len();
            if self.searched > MAX_LINE_BYTES {
                return Err(cut_off("a line is longer than any of Aldaba is"));
            }
            match self.answer.piece(PIECE_TIMEOUT).await? {
                Some(piece) => self.rest.extend_from_slice(&piece),
                None if self.rest.is_empty() && is_summary(&self.last) => return Ok(None),
                None => return Err(cut_off("the export was cut off: it ends without its summary")),
            }
        }
    }
}

fn cut_off(why: &str) -> Error {
    Error::Unreachable { detail: why.into() }
}

fn is_summary(line: &[u8]) -> bool {
    serde_json::from_slice(line)
        .is_ok_and(|line: Value| line["type"] == "summary" && line["complete"] == true)
}

impl App {
    /// Exports the application with its messages, deliveries and attempts.
    pub async fn export(&self, options: &ExportOptions) -> Result<Export, Error> {
        let call = Call::get(&["app", &self.id, "export"]).query_of(options);
        let answer = call.opened(&self.client).await?;
        Ok(Export { answer, rest: BytesMut::new(), searched: 0, last: Bytes::new() })
    }

    /// Removes everything that is stored of it, for good. The task says how far that is.
    pub async fn erase(&self) -> Result<BackgroundTask, Error> {
        Call::post(&["app", &self.id, "erase"]).json(&Erase::default()).answer(&self.client).await
    }

    /// How much that would be.
    pub async fn count_erase(&self) -> Result<ErasureCount, Error> {
        let body = Erase { dry_run: Some(true) };
        Call::post(&["app", &self.id, "erase"]).json(&body).answer(&self.client).await
    }
}
