//! The server's binary as it is installed: stripped, with its symbols in a file beside it. `Cargo.toml` strips nothing, so
//! that the benchmarks and profilers have the symbols, and both are built once.

use crate::run::{read, show};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) struct Stripped {
    pub(super) program: PathBuf,
    /// Names and lines, for debuggers and for the backtraces of panics.
    pub(super) symbols: PathBuf,
    /// By which a debugger finds the symbols of a program.
    build_id: String,
}

impl Stripped {
    /// Separates the parts of a binary into a folder.
    pub(super) fn of(binary: &Path, folder: &Path) -> Result<Self, String> {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let (program, symbols) = (folder.join("aldaba"), folder.join("aldaba.debug"));
        show(Command::new("objcopy").arg("--only-keep-debug").arg(binary).arg(&symbols))?;
        show(Command::new("chmod").arg("0644").arg(&symbols))?;
        let mut strip = Command::new("objcopy");
        // The link holds the name without its folder.
        strip.arg("--strip-all").arg("--add-gnu-debuglink=aldaba.debug").current_dir(folder);
        show(strip.arg(binary).arg(&program))?;
        let notes = read(Command::new("readelf").args(["--notes", "--wide"]).arg(&program))?;
        Ok(Self { program, symbols, build_id: build_id(&notes)? })
    }

    /// Where Debian's debuggers, and the backtraces of Rust, look for the symbols.
    pub(super) fn path_of_symbols(&self) -> String {
        let (first, rest) = self.build_id.split_at(2);
        format!("usr/lib/debug/.build-id/{first}/{rest}.debug")
    }
}

fn build_id(notes: &str) -> Result<String, String> {
    let found = notes.split_once("Build ID: ").and_then(|(_, rest)| rest.split_whitespace().next());
    match found {
        Some(id) if id.len() > 2 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => Ok(id.to_owned()),
        _ => Err(format!("the binary has no build id: link it with --build-id\n{notes}")),
    }
}

#[cfg(test)]
mod tests {
    use super::build_id;

    #[test]
    fn a_build_id_is_read_from_the_notes() {
        let notes =
            "  GNU  0x00000014\tNT_GNU_BUILD_ID (unique build ID bitstring)\t    Build ID: 07d6730b\n";
        assert_eq!(build_id(notes).unwrap(), "07d6730b");
        assert!(build_id("nothing").unwrap_err().contains("has no build id"));
    }
}
