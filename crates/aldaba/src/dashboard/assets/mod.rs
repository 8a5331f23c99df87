//! The files of pages. A digest in the name of each lets browsers keep them for ever.

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

const FOLDER: &str = "/dashboard/assets/";

pub(crate) struct Asset {
    stem: &'static str,
    ending: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
    path: LazyLock<String>,
}

pub(crate) static STYLE: Asset = Asset {
    stem: "style",
    ending: "css",
    content_type: "text/css; charset=utf-8",
    bytes: include_bytes!("style.css"),
    path: LazyLock::new(|| STYLE.named()),
};

pub(crate) static SCRIPT: Asset = Asset {
    stem: "script",
    ending: "js",
    content_type: "text/javascript; charset=utf-8",
    bytes: include_bytes!("script.js"),
    path: LazyLock::new(|| SCRIPT.named()),
};

pub(crate) static ICON: Asset = Asset {
    stem: "icon",
    ending: "svg",
    content_type: "image/svg+xml",
    bytes: include_bytes!("icon.svg"),
    path: LazyLock::new(|| ICON.named()),
};

impl Asset {
    pub(crate) fn path(&'static self) -> &'static str {
        &self.path
    }

    fn named(&self) -> String {
        let digest = Sha256::digest(self.bytes);
        let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("{FOLDER}{}-{digest}.{}", self.stem, self.ending)
    }
}

/// The file with this path. One of another version is no file.
pub(super) fn find(path: &str) -> Option<Response> {
    let asset = [&STYLE, &SCRIPT, &ICON].into_iter().find(|asset| asset.path() == path)?;
    let headers =
        [(CONTENT_TYPE, asset.content_type), (CACHE_CONTROL, "public, max-age=31536000, immutable")];
    Some((headers, asset.bytes).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_its_digest_alone() {
        assert!(find(STYLE.path()).is_some() && find(SCRIPT.path()).is_some());
        assert!(find("/dashboard/assets/style.css").is_none());
        assert!(STYLE.path().starts_with("/dashboard/assets/style-"));
    }

    #[test]
    fn the_script_is_short_and_evaluates_nothing() {
        let script = std::str::from_utf8(SCRIPT.bytes).unwrap();
        assert!(script.lines().count() < 350, "{} lines", script.lines().count());
        for word in ["eval(", "new Function", "innerHTML", "document.write", "setAttribute(\"style\""] {
            assert!(!script.contains(word), "{word}");
        }
    }
}
