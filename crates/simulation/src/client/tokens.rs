//! Portal tokens are issued and ended, and those that were ended are tried again and again.

use super::Client;
use super::notes::IssuedToken;
use crate::entropy::Dice;
use std::time::Duration;

/// How long a token counts by itself.
const TOKEN_LASTS: Duration = Duration::from_secs(7 * 24 * 3600);

impl Client {
    /// Goes on until the process dies.
    pub async fn use_tokens(self) {
        let purpose = format!("tokens of {}", self.process.number);
        let mut dice = Dice::of(self.world.scenario.seed, &purpose);
        while !self.process.is_dead() {
            self.try_tokens();
            match dice.between(0, 5) {
                0 => self.end_all(&mut dice).await,
                1 => self.log_out(&mut dice).await,
                _ => self.issue(&mut dice).await,
            }
            self.try_tokens();
            tokio::time::sleep(dice.span(Duration::from_secs(30), Duration::from_secs(1200))).await;
        }
    }

    async fn app(&self, dice: &mut Dice) -> Option<aldaba_delivery::AppId> {
        let tenant = dice.index(self.world.scenario.tenants);
        self.engine.application_id(&self.which(tenant)).await.ok().flatten()
    }

    async fn issue(&self, dice: &mut Dice) {
        let Some(app) = self.app(dice).await else { return };
        let Ok(issued_at) = self.directory().grant_portal_access(app, None).await else { return };
        if self.process.is_dead() {
            return;
        }
        let mut mark = [0; 32];
        mark.fill_with(|| dice.throw().to_le_bytes()[0]);
        let shown = self.engine.clock().now();
        let expires_at = shown + TOKEN_LASTS;
        let token =
            IssuedToken { app, mark, shown, issued_at, expires_at, ended: false, may_have_ended: false };
        self.world.notes.lock().tokens.push(token);
    }

    /// As `expire-all` does.
    async fn end_all(&self, dice: &mut Dice) {
        let Some(app) = self.app(dice).await else { return };
        let concerned = |token: &IssuedToken| token.app == app;
        self.mark(concerned, |token| token.may_have_ended = true);
        let ended = self.directory().end_portal_tokens(app, Vec::new(), Duration::ZERO).await;
        if ended.is_ok() && !self.process.is_dead() {
            // Those that are issued while the clock is ahead are not older, for a clock that is right.
            let now = self.engine.clock().now();
            self.mark(
                |token| concerned(token) && token.may_have_ended && token.shown < now,
                |token| token.ended = true,
            );
        }
    }

    /// As `logout` does.
    async fn log_out(&self, dice: &mut Dice) {
        let token = {
            let notes = self.world.notes.lock();
            if notes.tokens.is_empty() {
                return;
            }
            notes.tokens[dice.index(notes.tokens.len())]
        };
        let concerned = |other: &IssuedToken| other.mark == token.mark;
        self.mark(concerned, |token| token.may_have_ended = true);
        let org = self.world.scenario.org;
        let ended = self.directory().revoke_token(org, token.mark, Some(token.expires_at)).await;
        if ended.is_ok() && !self.process.is_dead() {
            self.mark(concerned, |token| token.ended = true);
        }
    }

    fn mark(&self, which: impl Fn(&IssuedToken) -> bool, mark: impl Fn(&mut IssuedToken)) {
        let mut notes = self.world.notes.lock();
        notes.tokens.iter_mut().filter(|token| which(token)).for_each(mark);
    }

    /// An ended token counts never again; one that nobody has ended does.
    fn try_tokens(&self) {
        if self.process.is_dead() {
            return;
        }
        let (now, revocations) = (self.engine.clock().now(), &self.engine.credentials().revocations);
        let mut notes = self.world.notes.lock();
        let mut faults = Vec::new();
        // What has ended by itself, on a clock that is right, need not be remembered.
        let lives = |token: &&IssuedToken| token.expires_at >= now.max(self.process.now());
        for token in notes.tokens.iter().filter(lives) {
            let refused = revocations.is_revoked(&token.mark)
                || revocations.has_ended(token.app, None, Some(token.issued_at), now);
            if token.ended && !refused {
                faults.push(format!("{token:?} was ended, and counts at {now:?}"));
            }
            if !token.may_have_ended && refused {
                faults.push(format!("{token:?} was not ended, and does not count at {now:?}"));
            }
        }
        notes.token_faults.extend(faults);
    }
}
