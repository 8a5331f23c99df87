//! `aldaba export`: all of an application, as a file with lines of JSON. The file gets its name only when it is complete.

use crate::cli::server_client::ServerError;
use crate::cli::server_options::{self, ServerOptions};
use crate::config::Config;
use aldaba_client::{Export, ExportOptions};
use clap::Args;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, IsTerminal, Write};
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
    File { file: PathBuf, source: std::io::Error },
    #[error("{0}. What was written until then is incomplete: {1}")]
    CutOff(ServerError, String),
    #[error("{0}")]
    System(#[from] std::io::Error),
}

pub(crate) fn run(
    command: ExportCommand,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<(), Error> {
    if let Some(file) = command.output.as_ref().filter(|file| file.exists()) {
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
                Err(error) => return Err(Error::CutOff(error, target.kept())),
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
    Output(BufWriter<std::io::Stdout>),
    File { file: BufWriter<File>, part: PathBuf, name: PathBuf },
}

impl Target {
    fn open(name: Option<PathBuf>) -> Result<Self, Error> {
        let Some(name) = name else { return Ok(Self::Output(BufWriter::new(std::io::stdout()))) };
        let part = part_of(&name);
        // It holds a customer's data: nobody else reads it. What an export before has left is replaced.
        let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part);
        let file = opened.map_err(|source| Error::File { file: part.clone(), source })?;
        Ok(Self::File { file: BufWriter::new(file), part, name })
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Error> {
        let written = match self {
            Self::Output(out) => out.write_all(line).and_then(|()| out.write_all(b"\n")),
            Self::File { file, .. } => file.write_all(line).and_then(|()| file.write_all(b"\n")),
        };
        written.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: std::io::Error) -> Error {
        match self {
            Self::Output(_) => Error::System(source),
            Self::File { part, .. } => Error::File { file: part.clone(), source },
        }
    }

    /// What is left of an export that was cut off.
    fn kept(&self) -> String {
        match self {
            Self::Output(_) => "it has no line with the type `summary`".into(),
            Self::File { part, .. } => format!("{} has no line with the type `summary`", part.display()),
        }
    }

    /// Gives the file its name, once all of it is on disk.
    fn finish(mut self) -> Result<String, Error> {
        let done = match &mut self {
            Self::Output(out) => out.flush().map(|()| "standard output".to_owned()),
            Self::File { file, part, name } => file
                .flush()
                .and_then(|()| file.get_ref().sync_all())
                .and_then(|()| std::fs::hard_link(&part, &name))
                .and_then(|()| std::fs::remove_file(&part))
                .map(|()| name.display().to_string()),
        };
        done.map_err(|source| self.failed(source))
    }
}

fn part_of(name: &Path) -> PathBuf {
    let mut part = name.as_os_str().to_owned();
    part.push(".part");
    part.into()
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
