//! Hundreds of host names whose name server never answers, next to ten endpoints that need no lookup.
//!
//! The machine chooses the name servers (`/etc/resolv.conf`), not a setting. So the server runs with another such file,
//! which needs root.

use super::beside::{Steady, bars};
use crate::Result;
use crate::load::{Traffic, Until, all_accepted, closed};
use crate::name_server::SilentNameServer;
use crate::numbers::counted;
use crate::report::{Bar, Report, Sheet};
use crate::suite::{Side, Suite, alternating};
use crate::tenants::{NewEndpoint, application};
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

pub(super) const NAME: &str = "silent-dns";

const APPLICATIONS: usize = 5;
const NAMES: usize = 500;
/// Names are looked up during the whole measurement: a lookup fails after two seconds.
const MESSAGES_EACH: usize = 10;
const SETTLE: Duration = Duration::from_secs(2);

pub(super) fn run(suite: &Suite) -> Result<Report> {
    let steady = Steady { endpoints: 10, a_second: 50.0, seconds: suite.seconds(10.0, 2.0) };
    let names = suite.count(NAMES, APPLICATIONS * 5);
    let resolv_conf = suite.folder().join("resolv.conf");
    std::fs::write(&resolv_conf, SilentNameServer::configuration())?;
    let silent = match may_mount(&resolv_conf).and_then(|()| SilentNameServer::start()) {
        Ok(silent) => silent,
        Err(why) => return Ok(Report::skipped(&why.to_string())),
    };
    let receiver = suite.receiver()?;
    let prepared = prepare(suite, names, &resolv_conf)?;
    let mut sheet = Sheet::default();
    for round in 0..suite.rounds() {
        for side in alternating(round) {
            let folder = if side == Side::A { suite.empty_folder()? } else { suite.copy(&prepared)? };
            let before = silent.questions();
            let server = suite.launch(&folder).with_name_servers(&resolv_conf).start()?;
            sleep(SETTLE);
            let settled = silent.questions();
            let latency = steady.measure(suite, server.api()?, &receiver, Vec::new())?;
            latency.put(&mut sheet, side);
            if side == Side::B {
                sheet.put("questions before", 0, (settled - before) as f64);
                sheet.put("questions meanwhile", 0, (silent.questions() - settled) as f64);
            }
            server.kill();
        }
        suite.progress(NAME, round, &sheet);
    }
    let least = sheet.values("questions before").iter().copied().fold(f64::INFINITY, f64::min);
    let mut bars = bars(&sheet);
    bars.push(Bar::at_least("questions before, in every round: one a name", names as f64, least, 0));
    let Steady { endpoints, a_second, seconds } = steady;
    let about = format!(
        "{a_second} messages/s for {seconds} s to {endpoints} new endpoints, alone and beside {} endpoints of \
         {APPLICATIONS} applications with a host name each, whose name server is silent. POST (when it was due) to \
         arrival.",
        counted(names)
    );
    Ok(Report { about, sheet, bars })
}

/// Fails with an explanation before anything is measured.
fn may_mount(resolv_conf: &Path) -> Result<()> {
    let script = "mount --bind \"$1\" /etc/resolv.conf";
    let tried =
        Command::new("unshare").args(["--mount", "--", "sh", "-c", script, "sh"]).arg(resolv_conf).output();
    match tried {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr);
            Err(format!("another /etc/resolv.conf for the server needs root and `unshare`: {}", why.trim())
                .into())
        }
        Err(error) => Err(format!("`unshare` is needed: {error}").into()),
    }
}

fn prepare(suite: &Suite, names: usize, resolv_conf: &Path) -> Result<TempDir> {
    let folder = suite.empty_folder()?;
    let launch = suite.launch(&folder).with_name_servers(resolv_conf);
    suite.fill_with(launch, async |api| {
        let mut paths = Vec::new();
        for app in 0..APPLICATIONS {
            let hosts = (app..names).step_by(APPLICATIONS);
            let endpoints = hosts.map(|host| format!("http://host-{host}.silent.example/hook"));
            let endpoints = endpoints.map(|url| NewEndpoint::new(url).policy("quick"));
            paths.push(application(api, endpoints.collect()).await?);
        }
        let count = (APPLICATIONS * MESSAGES_EACH) as u64;
        let traffic = Traffic { paths, bytes: 256, keys: false, first: 0 };
        all_accepted(&closed(api, traffic, 1, Until::Count(count)).await?)
    })?;
    Ok(folder)
}
