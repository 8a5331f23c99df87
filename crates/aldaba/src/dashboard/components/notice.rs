//! What a form has done, on the page that it leads back to. It is named in the URL, as a word of ours: no text of others is shown.

use super::State;
use crate::dashboard::texts::{Format, Tongue, texts};
use crate::dashboard::visit::Pairs;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Created,
    Saved,
    Resumed,
    ResumedAndRecovering,
    NothingToResume,
    TurnedOff,
    TurnedOn,
    /// A message was sent again, and answered well.
    Resent,
    /// It was answered badly, or not at all.
    ResentInVain,
    /// Nothing has come of it so far.
    ResendRuns,
    Discarded,
    Cancelled,
    ReplayStarted,
    SampleSent,
}

impl Done {
    const ALL: [Self; 14] = [
        Self::Created,
        Self::Saved,
        Self::Resumed,
        Self::ResumedAndRecovering,
        Self::NothingToResume,
        Self::TurnedOff,
        Self::TurnedOn,
        Self::Resent,
        Self::ResentInVain,
        Self::ResendRuns,
        Self::Discarded,
        Self::Cancelled,
        Self::ReplayStarted,
        Self::SampleSent,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Saved => "saved",
            Self::Resumed => "resumed",
            Self::ResumedAndRecovering => "recovering",
            Self::NothingToResume => "nothing-to-resume",
            Self::TurnedOff => "turned-off",
            Self::TurnedOn => "turned-on",
            Self::Resent => "resent",
            Self::ResentInVain => "resent-in-vain",
            Self::ResendRuns => "resend-runs",
            Self::Discarded => "discarded",
            Self::Cancelled => "cancelled",
            Self::ReplayStarted => "replay-started",
            Self::SampleSent => "sample-sent",
        }
    }

    fn state(self) -> State {
        match self {
            Self::ResentInVain => State::Failed,
            Self::ResendRuns | Self::NothingToResume | Self::TurnedOff => State::Waiting,
            _ => State::Delivered,
        }
    }

    /// The path of a page that says so.
    pub(crate) fn at(self, path: &str) -> String {
        with(path, &format!("done={}", self.name()))
    }

    /// The same, with how many there were.
    pub(crate) fn counted(self, path: &str, count: u64) -> String {
        with(path, &format!("done={}&count={count}", self.name()))
    }
}

fn with(path: &str, query: &str) -> String {
    let sign = if path.contains('?') { '&' } else { '?' };
    format!("{path}{sign}{query}")
}

texts! {
    DoneTexts {
        done(done: Done, count: Option<&str>) => match done {
            Done::Created => "Created.".to_owned(),
            Done::Saved => "Saved.".to_owned(),
            Done::Resumed => "Resumed. What was held is on its way.".to_owned(),
            Done::ResumedAndRecovering => "Resumed. What was held is on its way, and what died in the outage is sent again.".to_owned(),
            Done::NothingToResume => "There was nothing to resume.".to_owned(),
            Done::TurnedOff => "Turned off. Nothing is sent until it is turned on again.".to_owned(),
            Done::TurnedOn => "Turned on.".to_owned(),
            Done::Resent => "Sent again, and delivered.".to_owned(),
            Done::ResentInVain => "Sent again, without success. The attempt is in the timeline.".to_owned(),
            Done::ResendRuns => "It is being sent again. The attempt appears in the timeline when it has ended.".to_owned(),
            Done::Discarded => format!("Discarded: {}. The history stays.", count.unwrap_or("1")),
            Done::Cancelled => "Cancelled. Nothing more is sent for it.".to_owned(),
            Done::ReplayStarted => format!("Being sent again: {}.", count.unwrap_or("–")),
            Done::SampleSent => "A test was sent.".to_owned(),
        }, match done {
            Done::Created => "Creado.".to_owned(),
            Done::Saved => "Guardado.".to_owned(),
            Done::Resumed => "Reanudado. Lo retenido va de camino.".to_owned(),
            Done::ResumedAndRecovering => "Reanudado. Lo retenido va de camino, y lo que murió en la caída se envía de nuevo.".to_owned(),
            Done::NothingToResume => "No había nada que reanudar.".to_owned(),
            Done::TurnedOff => "Desactivado. No se envía nada hasta que se active de nuevo.".to_owned(),
            Done::TurnedOn => "Activado.".to_owned(),
            Done::Resent => "Reenviado y entregado.".to_owned(),
            Done::ResentInVain => "Reenviado sin éxito. El intento está en la cronología.".to_owned(),
            Done::ResendRuns => "Se está reenviando. El intento aparece en la cronología cuando termina.".to_owned(),
            Done::Discarded => format!("Descartadas: {}. El historial se conserva.", count.unwrap_or("1")),
            Done::Cancelled => "Cancelado. No se envía nada más.".to_owned(),
            Done::ReplayStarted => format!("Se envían de nuevo: {}.", count.unwrap_or("–")),
            Done::SampleSent => "Se ha enviado una prueba.".to_owned(),
        };
    }
}

pub(crate) struct Notice {
    state: State,
    words: String,
}

impl Notice {
    /// What the URL says. An unknown word says nothing.
    pub(crate) fn read(tongue: Tongue, query: &Pairs) -> Option<Self> {
        let named = query.get("done")?;
        let done = Done::ALL.into_iter().find(|done| done.name() == named)?;
        let count = query.get("count").and_then(|count| count.parse::<u64>().ok());
        let count = count.map(|count| Format(tongue).count(count));
        Some(Self { state: done.state(), words: <dyn DoneTexts>::of(tongue).done(done, count.as_deref()) })
    }

    pub(crate) fn markup(&self) -> String {
        self.state.banner(&self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_only_words_of_ours() {
        let notice = |query: &str| Notice::read(Tongue::English, &Pairs::read(query.as_bytes()));
        assert!(notice("done=<b>").is_none() && notice("").is_none());
        for done in Done::ALL {
            let path = done.counted("/dashboard?a=1", 1234);
            let found = notice(path.split_once('?').unwrap().1).unwrap();
            assert!(!found.words.is_empty());
        }
        assert!(notice("done=discarded&count=1234").unwrap().markup().contains("Discarded: 1,234."));
        assert!(notice("done=discarded&count=<b>").unwrap().markup().contains("Discarded: 1."));
    }
}
