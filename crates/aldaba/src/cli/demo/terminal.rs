//! Standard output as a terminal: draws a picture over the one before.

use super::screen::{Style, TerminalSize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

/// Codes that every terminal has.
const DEFAULT_SIZE: TerminalSize = TerminalSize { columns: 80, rows: 24 };

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
/// Cuts off long lines instead of wrapping them.
const CUT_LINES: &str = "\x1b[?7l";
const WRAP_LINES: &str = "\x1b[?7h";
/// The terminal shows everything between the codes at once, or ignores them.
const TOGETHER: &str = "\x1b[?2026h";
const SHOW: &str = "\x1b[?2026l";
const WIPE_LINE: &str = "\x1b[2K";
const REST_OF_SCREEN: &str = "\x1b[J";
const WHOLE_SCREEN: &str = "\x1b[2J\x1b[H";

/// A terminal in use. It is restored, however the demo ends.
#[derive(Debug)]
pub(super) struct Terminal {
    pub(super) size: TerminalSize,
    pub(super) style: Style,
    /// The lines that are on the screen.
    drawn: usize,
}

impl Terminal {
    /// `None`: standard output is no terminal, or not a usable one.
    pub(super) fn find(variables: &BTreeMap<String, String>) -> Option<Self> {
        let set = |name: &str| variables.get(name).map(String::as_str).filter(|value| !value.is_empty());
        if !io::stdout().is_terminal() || matches!(set("TERM"), None | Some("dumb")) {
            return None;
        }
        let locale = set("LC_ALL").or(set("LC_CTYPE")).or(set("LANG"));
        let style =
            Style { colour: set("NO_COLOR").is_none(), blocks: !matches!(locale, Some("C" | "POSIX")) };
        Some(Self { size: measure(), style, drawn: 0 })
    }

    /// The window was resized: the lines on the screen may have been wrapped.
    pub(super) fn measure_again(&mut self) -> io::Result<()> {
        self.size = measure();
        self.drawn = 0;
        write_out(WHOLE_SCREEN)
    }

    pub(super) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let text = frame(self.drawn, lines);
        self.drawn = lines.len();
        write_out(&text)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.drawn > 0 {
            let _ = write_out(&format!("{WRAP_LINES}{SHOW_CURSOR}"));
        }
    }
}

/// Replaces `drawn` lines above the cursor by these.
fn frame(drawn: usize, lines: &[String]) -> String {
    let mut text = format!("{TOGETHER}{HIDE_CURSOR}{CUT_LINES}\r");
    if drawn > 0 {
        let _ = write!(text, "\x1b[{drawn}A");
    }
    for line in lines {
        // Before the text and not after it: at the last column the cursor stands on the last character.
        let _ = write!(text, "{WIPE_LINE}{line}\r\n");
    }
    let _ = write!(text, "{REST_OF_SCREEN}{SHOW}");
    text
}

/// Writes and flushes.
pub(super) fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn measure() -> TerminalSize {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let size = size.map(|size| TerminalSize { columns: size.ws_col.into(), rows: size.ws_row.into() });
    // A terminal that does not know its size says zero.
    size.filter(|size| size.columns > 0 && size.rows > 0).unwrap_or(DEFAULT_SIZE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_goes_back_over_the_one_before_and_wipes_what_is_left_of_it() {
        let lines = ["one".to_owned(), "two".to_owned()];
        let first = frame(0, &lines);
        assert!(first.contains("\x1b[2Kone\r\n\x1b[2Ktwo\r\n\x1b[J") && !first.contains('A'), "{first:?}");
        assert!(frame(5, &lines).contains("\r\x1b[5A\x1b[2Kone"));
    }
}
