//! The service on a machine of its own, with real systemd: its restarts, an upgrade while it runs, and its removal.

use super::guide;
use super::machine::{Machine, wait};
use crate::run::{TaskResult, read};

/// `older` and `newer`: the packages, as paths within the machine. The newer one stays there.
pub(super) fn check(machine: &Machine<'_>, older: &str, newer: &str) -> TaskResult {
    let service = Service { machine };
    service.run(&format!("dpkg --install {older}"))?;
    service.wait_until("ActiveState", "active")?;
    service.a_process_that_is_killed_is_started_again()?;
    service.a_process_that_hangs_is_started_again()?;
    service.a_reload_keeps_the_process()?;
    service.with_the_change_of_the_page_it_listens_below_port_1024()?;
    service.a_wrong_setting_ends_it_with_exit_code_2_and_without_another_start()?;
    service.an_upgrade_restarts_it(newer)?;
    service.its_sandbox_is_closed()?;
    let process = service.property("MainPID")?;
    service.run("dpkg --remove aldaba")?;
    service.run(&format!("test ! -e /proc/{process}"))?;
    service.run(&format!("dpkg --purge aldaba; rm {older}"))?;
    done("a removal stops it")
}

struct Service<'a> {
    machine: &'a Machine<'a>,
}

impl Service<'_> {
    fn a_process_that_is_killed_is_started_again(&self) -> TaskResult {
        let before = self.property("MainPID")?;
        self.run("systemctl kill --signal=KILL --kill-whom=main aldaba")?;
        self.wait_until("NRestarts", "1")?;
        self.wait_until("ActiveState", "active")?;
        self.is_another_than(&before)?;
        done("a process that is killed is started again")
    }

    fn a_process_that_hangs_is_started_again(&self) -> TaskResult {
        self.change("[Service]\nWatchdogSec=2\n")?;
        let before = self.property("MainPID")?;
        self.run("systemctl kill --signal=STOP --kill-whom=main aldaba")?;
        self.wait_until("NRestarts", "1")?;
        self.wait_until("ActiveState", "active")?;
        self.is_another_than(&before)?;
        self.change("")?;
        done("a process that hangs is started again")
    }

    fn a_reload_keeps_the_process(&self) -> TaskResult {
        let before = self.property("MainPID")?;
        self.run("systemctl reload aldaba")?;
        self.wait_until("ActiveState", "active")?;
        if self.property("MainPID")? != before {
            return Err("a reload has started another process".into());
        }
        done("a reload keeps the process")
    }

    fn with_the_change_of_the_page_it_listens_below_port_1024(&self) -> TaskResult {
        self.run("echo ALDABA_LISTEN=127.0.0.1:443 >> /etc/aldaba/aldaba.env")?;
        self.change(&guide::change_of_the_unit()?)?;
        let lives = || self.run("aldaba health --live --url http://127.0.0.1:443").ok();
        wait("an answer at port 443", lives)?;
        self.run("sed --in-place /ALDABA_LISTEN/d /etc/aldaba/aldaba.env")?;
        self.change("")?;
        done("with the change of docs/operations.md it listens below port 1024")
    }

    /// Changes the unit as `systemctl edit` does, and starts the service again.
    fn change(&self, lines: &str) -> TaskResult {
        let folder = "/etc/systemd/system/aldaba.service.d";
        self.run(&format!(
            "mkdir --parents {folder}; printf '%s' '{lines}' > {folder}/override.conf; systemctl daemon-reload\n\
             systemctl reset-failed aldaba; systemctl restart aldaba"
        ))?;
        self.wait_until("ActiveState", "active")
    }

    fn a_wrong_setting_ends_it_with_exit_code_2_and_without_another_start(&self) -> TaskResult {
        self.run("cp --archive /etc/aldaba/aldaba.toml /root/right.toml; echo lissten = 1 >> /etc/aldaba/aldaba.toml")?;
        self.run("systemctl restart aldaba || true")?;
        self.wait_until("ActiveState", "failed")?;
        self.wait_until("ExecMainStatus", "2")?;
        let log = self.run("journalctl --no-pager --unit aldaba")?;
        if !log.contains("there is no setting `lissten`; did you mean `listen`?") {
            return Err(format!("the log does not say which setting is wrong:\n{log}"));
        }
        self.run("mv /root/right.toml /etc/aldaba/aldaba.toml && systemctl restart aldaba")?;
        self.wait_until("ActiveState", "active")?;
        done("a wrong setting ends it, the log names it, and it is not started again")
    }

    fn an_upgrade_restarts_it(&self, newer: &str) -> TaskResult {
        let before = self.property("MainPID")?;
        self.run(&format!("dpkg --install {newer}"))?;
        self.wait_until("ActiveState", "active")?;
        self.is_another_than(&before)?;
        done("an upgrade restarts it")
    }

    /// What the process sees and may do, asked of the kernel.
    fn its_sandbox_is_closed(&self) -> TaskResult {
        let process = self.property("MainPID")?;
        let status = self.run(&format!("cat /proc/{process}/status"))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(str::trim).unwrap_or_default().to_owned()
        };
        for (name, expected) in [
            ("CapEff", "0000000000000000"),
            ("CapBnd", "0000000000000000"),
            ("NoNewPrivs", "1"),
            ("Seccomp", "2"),
        ] {
            if field(name) != expected {
                return Err(format!("{name} of the server is {}, not {expected}", field(name)));
            }
        }
        let mounts = self.run(&format!("cat /proc/{process}/mountinfo"))?;
        let writable = |at: &str| {
            mounts.lines().any(|line| {
                let mut words = line.split(' ').skip(4);
                words.next() == Some(at) && words.next().is_some_and(|options| options.starts_with("rw"))
            })
        };
        if writable("/") || !writable("/var/lib/aldaba") {
            return Err(format!("the server can write elsewhere than to its folder:\n{mounts}"));
        }
        done("it has no capabilities, filters system calls, and can write to its folder only")
    }

    fn is_another_than(&self, before: &str) -> TaskResult {
        let now = self.property("MainPID")?;
        if now != before { Ok(()) } else { Err(format!("the server has not been started again: {now}")) }
    }

    fn property(&self, name: &str) -> Result<String, String> {
        Ok(self.run(&format!("systemctl show --property={name} --value aldaba"))?.trim().to_owned())
    }

    fn wait_until(&self, name: &str, value: &str) -> TaskResult {
        let reached = || self.property(name).ok().filter(|found| found == value).map(drop);
        wait(&format!("{name} of the service to be {value}"), reached).map_err(|why| {
            let log = self.run(
                "systemctl --no-pager --full status aldaba || true; journalctl --no-pager --unit aldaba",
            );
            format!("{why}\n{}", log.unwrap_or_default())
        })
    }

    fn run(&self, script: &str) -> Result<String, String> {
        read(&mut self.machine.script(script))
    }
}

fn done(claim: &str) -> TaskResult {
    println!("the service: {claim} ... ok");
    Ok(())
}
