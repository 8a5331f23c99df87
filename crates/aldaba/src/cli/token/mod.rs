//! `aldaba token`: signed tokens, and API keys. A running server locks its data folder, so the command makes and
//! revokes keys through its API; without a server it opens the store.

mod keys;
mod list;

use crate::cli::server_client::ServerError;
use crate::cli::server_options::{self, ServerOptions};
use crate::config::Config;
use crate::token::{NewOrganizationToken, issue_organization_token};
use aldaba_delivery::parse_duration;
use aldaba_engine::{Clock, SystemClock, check_key_name};
use aldaba_store::KeyScope;
use clap::{Args, Subcommand};
use keys::{KeyBackend, KeyRequest};
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

/// The name of a key that was given none.
const UNNAMED: &str = "made at the command line";
/// The lifetime of a signed token that was given none.
const LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Print a new API token, alone, on standard output: an organization token that is valid for a year, or, with any of
    /// --name, --scope, --app and --expires, an API key that can be revoked. What it is goes to standard error. Needs the
    /// data folder of a server (--data), running or not; `aldaba init` makes one
    Create {
        #[command(flatten)]
        key: KeyOptions,
        #[command(flatten)]
        server_options: ServerOptions,
    },
    /// List the API keys
    List {
        #[command(flatten)]
        server_options: ServerOptions,
    },
    /// End an API key at once
    Revoke {
        /// Its prefix, or its id, as `token list` shows them
        #[arg(value_name = "PREFIX|ID")]
        key: String,
        #[command(flatten)]
        server_options: ServerOptions,
    },
}

#[derive(Debug, Args)]
pub(crate) struct KeyOptions {
    /// Make an API key, and call it so
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,
    /// Make an API key for everything (admin), for messages alone (send), or for looking (read) [default: admin]
    #[arg(long, value_name = "SCOPE", value_parser = scope)]
    scope: Option<KeyScope>,
    /// Make an API key for one application: its id or uid
    #[arg(long, value_name = "APP")]
    app: Option<String>,
    /// Make an API key that expires after this time, such as 12h or 30d, or `never` [default: never]
    #[arg(long, value_name = "SPAN", value_parser = expiry)]
    expires: Option<Expiry>,
    /// Make an organization token whatever else is given: --name is what the audit log calls it, and --expires when it
    /// expires [default: 365d]
    #[arg(long, conflicts_with_all = ["scope", "app"])]
    signed: bool,
}

/// When a token or key expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expiry {
    Never,
    After(Duration),
}

impl Expiry {
    fn span(self) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::After(span) => Some(span),
        }
    }
}

/// The result of `token create`.
enum CreateRequest {
    Signed { name: Option<String>, lifetime: Option<Duration> },
    Key(KeyRequest),
}

impl KeyOptions {
    fn request(self) -> CreateRequest {
        let Self { name, scope, app, expires, signed } = self;
        if signed || (name.is_none() && scope.is_none() && app.is_none() && expires.is_none()) {
            return CreateRequest::Signed { name, lifetime: expires.map_or(Some(LIFETIME), Expiry::span) };
        }
        let (name, scope) = (name.unwrap_or_else(|| UNNAMED.into()), scope.unwrap_or(KeyScope::Admin));
        CreateRequest::Key(KeyRequest { name, scope, app, expires: expires.and_then(Expiry::span) })
    }
}

impl TokenCommand {
    pub(crate) fn server_options(&self) -> &ServerOptions {
        let (Self::Create { server_options, .. }
        | Self::List { server_options }
        | Self::Revoke { server_options, .. }) = self;
        server_options
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The request cannot be fulfilled.
    #[error("{0}")]
    Rejected(String),
    /// The options are wrong.
    #[error("{0}")]
    Usage(&'static str),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Options(#[from] server_options::Error),
    #[error("the store cannot do it: {0}")]
    Store(#[from] aldaba_store::Error),
    #[error("{0}")]
    System(#[from] std::io::Error),
}

fn name(text: &str) -> Result<String, String> {
    check_key_name(text).map(|()| text.to_owned())
}

fn scope(text: &str) -> Result<KeyScope, String> {
    KeyScope::from_name(text).ok_or_else(|| "expected admin, send or read".into())
}

fn expiry(text: &str) -> Result<Expiry, String> {
    if text == "never" {
        return Ok(Expiry::Never);
    }
    let span = parse_duration(text).filter(|span| !span.is_zero()).map(Expiry::After);
    span.ok_or_else(|| "expected a duration such as 90s, 15m, 12h or 30d, or never".into())
}

pub(crate) fn run(
    command: TokenCommand,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<(), Error> {
    match command {
        TokenCommand::Create { key, server_options } => match key.request() {
            CreateRequest::Signed { name, lifetime } => sign(&server_options, name, lifetime, config),
            CreateRequest::Key(wanted) => wait(async {
                let keys = KeyBackend::open(server_options, config, variables)?;
                let made = keys.create(&wanted).await?;
                keys.close().await;
                writeln!(std::io::stdout(), "{}", made.key)?;
                // The description goes to standard error, so that the output can be used as it is.
                eprintln!("{}", made.about);
                Ok(())
            })?,
        },
        TokenCommand::List { server_options } => wait(async {
            let keys = KeyBackend::open(server_options, config, variables)?;
            let found = keys.list().await?;
            keys.close().await;
            let table = list::table(&found, &keys::rfc3339(SystemClock::new().now()));
            Ok(std::io::stdout().write_all(table.as_bytes())?)
        })?,
        TokenCommand::Revoke { key, server_options } => wait(async {
            let keys = KeyBackend::open(server_options, config, variables)?;
            keys.revoke(&key).await?;
            keys.close().await;
            eprintln!("{key} is revoked");
            Ok(())
        })?,
    }
}

/// A signed token needs neither a server nor the store.
fn sign(
    server_options: &ServerOptions,
    name: Option<String>,
    lifetime: Option<Duration>,
    config: &Config,
) -> Result<(), Error> {
    if server_options.url.is_some() || server_options.token.is_some() {
        return Err(Error::Usage(
            "--url and --token are for API keys, which a server keeps: say what the key is to be, for example with --name",
        ));
    }
    let secret = server_options::signing_secret(config)?;
    let new = NewOrganizationToken { org: server_options.org, name, now: SystemClock::new().now(), lifetime };
    let about = about(&new);
    writeln!(std::io::stdout(), "{}", issue_organization_token(&secret, new))?;
    eprintln!("{about}");
    Ok(())
}

/// The description of an organization token, for standard error.
fn about(new: &NewOrganizationToken) -> String {
    let name = new.name.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default();
    let end = match new.expires_at() {
        Some(end) => format!("expires {}", list::minute(&keys::rfc3339(end))),
        None => "never expires".into(),
    };
    format!(
        "Organization token{name} for {}: scope admin (everything in the organization), {end}.\n\
         It is in no list: `token create --name NAME` makes an API key, which `token list` shows and `token revoke` ends.\n\
         `token create --signed --expires 90d` makes one that expires at another time.",
        new.org
    )
}

fn wait<T>(future: impl Future<Output = T>) -> Result<T, Error> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future))
}
