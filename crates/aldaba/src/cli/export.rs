//! `aldaba export`: all of an application, as a file with lines of JSON. The file gets its name only when it is complete.

use crate::cli::server_client::ServerError;
use crate::cli::server_options::{self, ServerOptions};
use crate::config::Config;
use aldaba_client::{Export, ExportOptions};
use aldaba_engine::{Entropy, SystemEntropy};
use clap::Args;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// After how many bytes the progress is shown again.
const PROGRESS_BYTES: u64 = 4 << 20;

#[derive(Debug, Args)]
pub(crate) struct ExportCommand {
    /// The application, by its id or uid
    #[arg(value_name = "APP")]
    app: String,
    /// The file to write; it must not exist yet. Without it the lines go to standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// With signing secrets and the values of headers
    #[arg(long)]
    secrets: bool,
    /// Only messages that were accepted from this moment on, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    after: Option<String>,
    /// Only messages that were accepted before this moment
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
    #[command(flatten)]
    pub(crate) server_options: ServerOptions,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Options(#[from] server_options::Error),
    #[error("--output {}: the file exists already; choose another name", file.display())]
    Exists { file: PathBuf },
    #[error("cannot write {}: {source}", file.display())]
    File { file: PathBuf, source: io::Error },
    #[error("{0}. The export is incomplete: {1}")]
    CutOff(ServerError, String),
    #[error("{0}")]
    System(#[from] io::Error),
}

pub(crate) fn run(
    command: ExportCommand,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<(), Error> {
    // A link that leads nowhere is in the way, too.
    if let Some(file) = command.output.as_ref().filter(|file| file.symlink_metadata().is_ok()) {
        return Err(Error::Exists { file: file.clone() });
    }
    let server = command.server_options.server(variables, config)?;
    let options = ExportOptions {
        after: command.after,
        before: command.before,
        secrets: command.secrets.then_some(true),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut export = server.call(server.client().app(command.app).export(&options)).await?;
        let mut target = Target::open(command.output)?;
        let mut progress = Progress::new();
        loop {
            match server.call(export.line()).await {
                Ok(Some(line)) => {
                    target.line(&line)?;
                    progress.line(line.len());
                }
                Ok(None) => break,
                Err(error) => return Err(Error::CutOff(error, target.left())),
            }
        }
        drop::<Export>(export);
        let name = target.finish()?;
        progress.finish(&name);
        Ok(())
    })
}

/// Where the lines go.
enum Target {
    Output(BufWriter<io::Stdout>),
    File(Unfinished),
}

impl Target {
    fn open(name: Option<PathBuf>) -> Result<Self, Error> {
        match name {
            None => Ok(Self::Output(BufWriter::new(io::stdout()))),
            Some(name) => Ok(Self::File(Unfinished::make(name)?)),
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Error> {
        match self {
            Self::Output(out) => out.write_all(line).and_then(|()| out.write_all(b"\n"))?,
            Self::File(Unfinished { file, name, .. }) => file
                .write_all(line)
                .and_then(|()| file.write_all(b"\n"))
                .map_err(|source| failed(name, source))?,
        }
        Ok(())
    }

    /// What is left of an export that was cut off.
    fn left(&self) -> String {
        match self {
            Self::Output(_) => "it has no line with the type `summary`".into(),
            Self::File(Unfinished { name, .. }) => format!("{} was not written", name.display()),
        }
    }

    fn finish(self) -> Result<String, Error> {
        match self {
            Self::Output(mut out) => {
                out.flush()?;
                Ok("standard output".into())
            }
            Self::File(unfinished) => unfinished.finish(),
        }
    }
}

fn failed(name: &Path, source: io::Error) -> Error {
    Error::File { file: name.to_owned(), source }
}

/// A file that is not complete. It has a name that nobody else uses.
struct Unfinished {
    file: BufWriter<File>,
    part: Part,
    name: PathBuf,
}

/// The name of what is not complete. Dropped, it is removed.
struct Part(PathBuf);

impl Drop for Part {
    fn drop(&mut self) {
        // After a rename it is gone.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Unfinished {
    fn make(name: PathBuf) -> Result<Self, Error> {
        let is_folder = name.as_os_str().as_encoded_bytes().ends_with(b"/");
        let Some(file_name) = name.file_name().filter(|_| !is_folder) else {
            return Err(failed(&name, io::ErrorKind::InvalidInput.into()));
        };
        let chance = u64::from_le_bytes((&SystemEntropy::new() as &dyn Entropy).bytes());
        let mut part = OsString::from(".");
        part.push(file_name);
        part.push(format!(".{chance:016x}.part"));
        let path = folder_of(&name).join(part);
        // It holds a customer's data: nobody else reads it. A file or a link that has the name is not touched.
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = BufWriter::new(opened.map_err(|source| failed(&name, source))?);
        Ok(Self { file, part: Part(path), name })
    }

    /// Gives the file its name, once all of it is on disk.
    fn finish(self) -> Result<String, Error> {
        let Self { mut file, part, name } = self;
        let done = file
            .flush()
            .and_then(|()| file.get_ref().sync_all())
            .and_then(|()| publish(&part.0, &name))
            .and_then(|()| {
                drop(part);
                File::open(folder_of(&name))?.sync_all()
            });
        match done {
            Ok(()) => Ok(name.display().to_string()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Error::Exists { file: name }),
            Err(source) => Err(failed(&name, source)),
        }
    }
}

/// Gives the complete file its name. A file that has the name meanwhile stays.
fn publish(part: &Path, name: &Path) -> io::Result<()> {
    match std::fs::hard_link(part, name) {
        // Some file systems have no hard links.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Ok(renameat_with(CWD, part, CWD, name, RenameFlags::NOREPLACE)?)
        }
        linked => linked,
    }
}

fn folder_of(name: &Path) -> &Path {
    name.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Says on standard error how far the export is.
struct Progress {
    lines: u64,
    bytes: u64,
    /// How many bytes there were when it was shown last.
    shown: u64,
    is_terminal: bool,
}

impl Progress {
    fn new() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { lines: 0, bytes: 0, shown: 0, is_terminal }
    }

    fn line(&mut self, bytes: usize) {
        self.lines += 1;
        self.bytes += bytes as u64 + 1;
        if self.is_terminal && self.bytes >= self.shown + PROGRESS_BYTES {
            self.shown = self.bytes;
            eprint!("\r{} lines, {:.1} MB", self.lines, self.bytes as f64 / 1e6);
        }
    }

    fn finish(&self, name: &str) {
        let begin = if self.is_terminal { "\r" } else { "" };
        eprintln!("{begin}exported {} lines, {} bytes, to {name}", self.lines, self.bytes);
    }
}
