//! The code blocks of pages, adapted to a server that is already built and to free ports.

use std::path::PathBuf;

/// A code block of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The text after the opening fence.
    pub(crate) language: String,
    pub(crate) body: String,
}

const FENCE: &str = "```";

/// The blocks of a page, or of a part of it, in order.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix(FENCE) {
            let body = lines.by_ref().take_while(|line| *line != FENCE).map(|line| format!("{line}\n"));
            blocks.push(Block { language: language.to_owned(), body: body.collect() });
        }
    }
    blocks
}

/// The body of the block after `<!-- run: name -->`.
pub(crate) fn block(text: &str, name: &str) -> Result<String, String> {
    let mark = format!("<!-- run: {name} -->");
    let rest = text.split_once(&mark).ok_or(format!("missing `{mark}`"))?.1;
    Ok(blocks(rest).into_iter().next().ok_or(format!("no code after `{mark}`"))?.body)
}

/// The replacements for `cargo run` and for the ports on pages.
#[derive(Clone, Debug)]
pub(crate) struct Fitting {
    pub(crate) binary: PathBuf,
    /// The ports of the server, of the receiver, and of a second receiver that a recipe starts.
    pub(crate) ports: [u16; 3],
}

impl Fitting {
    pub(crate) fn fit(&self, code: &str) -> String {
        let [server, receiver, second] = self.ports.map(|port| format!("127.0.0.1:{port}"));
        let (binary, beside) = (self.binary.display(), self.binary.with_file_name("receiver"));
        code.replace("cargo run --release -- serve", &format!("{binary} serve --listen {server}"))
            .replace("cargo run --release --package receiver --", &beside.display().to_string())
            .replace("cargo run --release --", &binary.to_string())
            .replace("127.0.0.1:8071", &server)
            .replace("127.0.0.1:9000", &receiver)
            .replace("127.0.0.1:9001", &second)
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, Fitting, block, blocks};

    const PAGE: &str =
        "# A page\n```sh\necho one\n\necho two\n```\n<!-- run: it -->\n```python\nprint(3)\n```\n";

    #[test]
    fn blocks_have_a_language_and_a_body() {
        let first = Block { language: "sh".into(), body: "echo one\n\necho two\n".into() };
        let second = Block { language: "python".into(), body: "print(3)\n".into() };
        assert_eq!(blocks(PAGE), [first, second]);
    }

    #[test]
    fn a_block_is_found_by_its_mark() {
        assert_eq!(block(PAGE, "it").unwrap(), "print(3)\n");
        assert_eq!(block(PAGE, "that").unwrap_err(), "missing `<!-- run: that -->`");
    }

    #[test]
    fn commands_and_ports_are_those_of_the_run() {
        let fitting = Fitting { binary: "/bin/aldaba".into(), ports: [1, 2, 3] };
        assert_eq!(fitting.fit("cargo run --release -- serve"), "/bin/aldaba serve --listen 127.0.0.1:1");
        assert_eq!(
            fitting.fit("http://127.0.0.1:8071 http://127.0.0.1:9000 http://127.0.0.1:9001"),
            "http://127.0.0.1:1 http://127.0.0.1:2 http://127.0.0.1:3"
        );
        let receiver = "cargo run --release --package receiver -- 127.0.0.1:9000";
        assert_eq!(fitting.fit(receiver), "/bin/receiver 127.0.0.1:2");
    }
}
