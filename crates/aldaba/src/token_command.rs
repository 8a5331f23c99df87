//! `aldaba token`: tokens that are signed, and API keys that are kept. A running server has its data folder for itself,
//! so that keys are made and revoked through its API; without one the command opens the store.

mod keys;
mod list;

use crate::api_client::ApiError;
use crate::config::Config;
use crate::reach::{self, Reach};
use crate::token;
use aldaba_delivery::{OrgId, parse_span};
use aldaba_engine::{Clock, DataFolder, FolderError, SystemClock, SystemEntropy, check_key_name};
use aldaba_store::Scope;
use aldaba_store::sqlite::OpenError;
use clap::{Args, Subcommand};
use keys::{Keys, Wanted};
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

/// What a key is called that was given no name.
const UNNAMED: &str = "made at the command line";

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Print a new API token, alone, on standard output; with any of --name, --scope, --app and --expires an
    /// API key that can be revoked. Works beside a running server
    Create {
        #[command(flatten)]
        key: KeyOptions,
        #[command(flatten)]
        whose: Whose,
    },
    /// List the API keys
    List {
        #[command(flatten)]
        whose: Whose,
    },
    /// End an API key at once
    Revoke {
        /// Its prefix, or its id, as `token list` shows them
        #[arg(value_name = "PREFIX|ID")]
        key: String,
        #[command(flatten)]
        whose: Whose,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Whose {
    #[command(flatten)]
    reach: Reach,
    /// The organization that the token or key speaks for
    #[arg(long, value_name = "ORG_ID", default_value = token::DEFAULT_ORGANIZATION)]
    org: OrgId,
}

#[derive(Debug, Args)]
pub(crate) struct KeyOptions {
    /// Make an API key, and call it so
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,
    /// Make an API key for everything (admin), for messages alone (send), or for looking (read) [default: admin]
    #[arg(long, value_name = "SCOPE", value_parser = scope)]
    scope: Option<Scope>,
    /// Make an API key for one application: its id or uid
    #[arg(long, value_name = "APP")]
    app: Option<String>,
    /// Make an API key that ends after this time, such as 12h or 30d
    #[arg(long, value_name = "SPAN", value_parser = span)]
    expires: Option<Duration>,
}

impl KeyOptions {
    fn wanted(self) -> Option<Wanted> {
        let Self { name, scope, app, expires } = self;
        if name.is_none() && scope.is_none() && app.is_none() && expires.is_none() {
            return None;
        }
        let (name, scope) = (name.unwrap_or_else(|| UNNAMED.into()), scope.unwrap_or(Scope::Admin));
        Some(Wanted { name, scope, app, expires })
    }
}

impl TokenCommand {
    pub(crate) fn reach(&self) -> &Reach {
        let (Self::Create { whose, .. } | Self::List { whose } | Self::Revoke { whose, .. }) = self;
        &whose.reach
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Asked(String),
    #[error(transparent)]
    Server(#[from] ApiError),
    #[error(
        "a server runs on the data folder {folder}, but it does not answer at {url} ({why}): name its address with --url"
    )]
    Silent { folder: String, url: String, why: String },
    #[error(transparent)]
    Reach(#[from] reach::Failure),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the store cannot do it: {0}")]
    Store(#[from] aldaba_store::Error),
    #[error("{0}")]
    System(#[from] std::io::Error),
}

fn name(text: &str) -> Result<String, String> {
    check_key_name(text).map(|()| text.to_owned())
}

fn scope(text: &str) -> Result<Scope, String> {
    Scope::from_name(text).ok_or_else(|| "expected admin, send or read".into())
}

fn span(text: &str) -> Result<Duration, String> {
    let span = parse_span(text).filter(|span| !span.is_zero());
    span.ok_or_else(|| "expected a span such as 90s, 15m, 12h or 30d".into())
}

pub(crate) fn run(
    command: TokenCommand,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<(), Failure> {
    match command {
        TokenCommand::Create { key, whose } => match key.wanted() {
            None => sign(&whose, config),
            Some(wanted) => wait(async {
                let keys = Keys::open(whose.reach, whose.org, config, variables, true).await?;
                let made = keys.create(&wanted).await?;
                keys.close().await;
                writeln!(std::io::stdout(), "{}", made.key)?;
                // What it is goes beside it, so that the output can be used as it is.
                eprintln!("{}", made.about);
                Ok(())
            })?,
        },
        TokenCommand::List { whose } => wait(async {
            let keys = Keys::open(whose.reach, whose.org, config, variables, false).await?;
            let found = keys.list().await?;
            keys.close().await;
            Ok(std::io::stdout().write_all(list::table(&found).as_bytes())?)
        })?,
        TokenCommand::Revoke { key, whose } => wait(async {
            let keys = Keys::open(whose.reach, whose.org, config, variables, false).await?;
            keys.revoke(&key).await?;
            keys.close().await;
            eprintln!("{key} counts no longer");
            Ok(())
        })?,
    }
}

/// A signed token needs neither a server nor the store.
fn sign(whose: &Whose, config: &Config) -> Result<(), Failure> {
    if whose.reach.url.is_some() || whose.reach.token.is_some() {
        let what = "--url and --token are for API keys, which a server keeps: say what the key is to be, for \
                    example with --name";
        return Err(Failure::Asked(what.into()));
    }
    let secret = match &config.jwt_secret {
        // The folder is not needed then, and may be another machine's.
        Some(secret) => secret.clone(),
        None => crate::keys::jwt_secret(config, &DataFolder::open(config.data())?, &SystemEntropy::new())?,
    };
    let token = token::issue_token(&secret, whose.org, SystemClock::new().now());
    writeln!(std::io::stdout(), "{token}")?;
    Ok(())
}

fn wait<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future))
}
