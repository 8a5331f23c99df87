//! The payload: shown so that nothing in it hides, byte for byte as a file.

use super::texts::MessageTexts;
use crate::api::Access;
use crate::dashboard::answer::download;
use crate::dashboard::components::visible;
use crate::dashboard::fault::Fault;
use crate::dashboard::route::PageRoute;
use crate::dashboard::texts::Format;
use crate::dashboard::visit::Visit;
use aldaba_store::Message;
use axum::response::Response;

/// What is shown of a payload; all of it is in the file.
const MOST_SHOWN: usize = 64 * 1024;
const MOST_OF_RESPONSE: usize = 2048;

pub(super) fn routes() -> Vec<PageRoute> {
    let path = "/dashboard/apps/{app}/messages/{message}/payload";
    vec![PageRoute::get(path, Access::Read, file)]
}

pub(super) struct PayloadView {
    /// HTML.
    pub(super) shown: String,
    pub(super) size: String,
    /// Only its beginning is shown, or it is no text.
    pub(super) note: Option<String>,
    pub(super) is_deleted: bool,
    pub(super) file: String,
}

impl PayloadView {
    pub(super) fn of(visit: &Visit, message: &Message) -> Self {
        let t = <dyn MessageTexts>::of(visit.view.tongue);
        let (bytes, format) = (&message.content.payload, Format(visit.view.tongue));
        let (text, is_text) = shown_part(bytes, MOST_SHOWN);
        let note = if !is_text {
            Some(t.not_text())
        } else if bytes.len() > MOST_SHOWN {
            Some(t.only_the_beginning(&format.bytes(MOST_SHOWN as u64)))
        } else {
            None
        };
        Self {
            shown: visible(&text),
            size: format.bytes(bytes.len() as u64),
            note,
            is_deleted: message.expunged,
            file: format!("{}/payload", visit.to().message(message.app, message.id)),
        }
    }
}

/// The beginning as text, and whether it is text.
fn shown_part(bytes: &[u8], most: usize) -> (String, bool) {
    let part = &bytes[..bytes.len().min(most)];
    match std::str::from_utf8(part) {
        Ok(text) => (text.to_owned(), true),
        // Cut within a character.
        Err(error) if error.error_len().is_none() && part.len() < bytes.len() => {
            (String::from_utf8_lossy(&part[..error.valid_up_to()]).into_owned(), true)
        }
        Err(_) => (String::from_utf8_lossy(part).into_owned(), false),
    }
}

/// The beginning of what a receiver has answered.
pub(super) fn beginning(response: &[u8]) -> String {
    visible(&shown_part(response, MOST_OF_RESPONSE).0)
}

async fn file(visit: Visit) -> Result<Response, Fault> {
    let app = visit.application().await?;
    let message = app.message(visit.parameter("message")).await?;
    Ok(download(message.content.payload.clone(), &format!("{}.json", message.id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_cut_between_characters_and_other_bytes_are_no_text() {
        assert_eq!(shown_part("añb".as_bytes(), 2), ("a".to_owned(), true));
        assert_eq!(shown_part(b"{\"n\": 1.10}", 99), ("{\"n\": 1.10}".to_owned(), true));
        assert!(!shown_part(b"\xff\xfe", 99).1);
    }
}
