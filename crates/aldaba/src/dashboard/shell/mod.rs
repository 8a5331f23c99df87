//! What surrounds every page: the bars, the search, the language and the colours, who has logged in.

mod view;

pub(crate) use view::{Theme, View, routes};

use super::assets;
use super::components::Notice;
use super::paths::Paths;
use super::session::Session;
use super::texts::ShellTexts;
use super::visit::Visit;
use crate::api::{Access, Api};
use crate::token::{Caller, Rights};
use aldaba_store::ActorIdentity;
use http::request::Parts;

/// The places that the side bar leads to. A page belongs to one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Overview,
    Apps,
    DeadLetter,
    /// None of them.
    Elsewhere,
}

impl Place {
    const ALL: [Self; 3] = [Self::Overview, Self::Apps, Self::DeadLetter];

    fn path(self) -> String {
        match self {
            Self::Overview | Self::Elsewhere => Paths.overview(),
            Self::Apps => Paths.apps(),
            Self::DeadLetter => Paths.dead_letter(),
        }
    }

    /// What a caller needs to be led there.
    fn access(self) -> Access {
        match self {
            Self::Overview | Self::Elsewhere => Access::Read,
            Self::Apps | Self::DeadLetter => Access::ReadOrganization,
        }
    }
}

/// A link of the side bar.
pub(crate) struct Link {
    pub(crate) path: String,
    pub(crate) label: String,
    pub(crate) is_here: bool,
}

/// A choice of colours.
pub(crate) struct ThemeChoice {
    pub(crate) name: &'static str,
    pub(crate) label: String,
    pub(crate) is_chosen: bool,
}

/// What a template needs for the frame around its page.
pub(crate) struct Shell {
    pub(crate) t: &'static dyn ShellTexts,
    pub(crate) to: Paths,
    pub(crate) view: View,
    pub(crate) title: String,
    pub(crate) links: Vec<Link>,
    /// Who has logged in. `None`: nobody.
    pub(crate) who: Option<String>,
    /// This page, for what leads back to it.
    pub(crate) here: String,
    /// What the last form has done.
    pub(crate) notice: Option<Notice>,
    pub(crate) style: &'static str,
    pub(crate) script: &'static str,
    pub(crate) icon: &'static str,
}

impl Shell {
    pub(crate) fn of(visit: &Visit, place: Place, title: String) -> Self {
        let here = visit.here();
        let notice = Notice::read(visit.view.tongue, &visit.query);
        Self { here, notice, ..Self::new(visit.view, title, Some(&visit.caller), place) }
    }

    /// Without a session.
    pub(crate) fn of_guest(view: View, title: String) -> Self {
        Self::new(view, title, None, Place::Elsewhere)
    }

    /// With a session, if there is one.
    pub(crate) fn for_anyone(api: &Api, view: View, parts: &Parts, title: String) -> Self {
        let session = Session::read(api, &parts.headers).ok();
        Self::new(view, title, session.as_ref().map(|session| &session.caller), Place::Elsewhere)
    }

    pub(crate) fn themes(&self) -> Vec<ThemeChoice> {
        let choice = |theme: Theme| ThemeChoice {
            name: theme.name(),
            label: self.t.theme(theme),
            is_chosen: theme == self.view.theme,
        };
        Theme::ALL.map(choice).into()
    }

    fn new(view: View, title: String, caller: Option<&Caller>, place: Place) -> Self {
        let t = <dyn ShellTexts>::of(view.tongue);
        let links = caller.map(|caller| links(t, caller, place)).unwrap_or_default();
        let who = caller.map(|caller| name_of(t, caller));
        let (style, script, icon) = (assets::STYLE.path(), assets::SCRIPT.path(), assets::ICON.path());
        let (here, notice) = (String::new(), None);
        Self { t, to: Paths, view, title, links, who, here, notice, style, script, icon }
    }
}

fn links(t: &dyn ShellTexts, caller: &Caller, place: Place) -> Vec<Link> {
    let allowed = Place::ALL.into_iter().filter(|place| caller.may(place.access()).is_ok());
    let link = |to: Place| Link { path: to.path(), label: t.place(to), is_here: to == place };
    allowed.map(link).collect()
}

fn name_of(t: &dyn ShellTexts, caller: &Caller) -> String {
    match (&caller.actor().identity, caller.rights()) {
        (ActorIdentity::Key { name, .. }, _) => name.clone(),
        (ActorIdentity::OrganizationToken { name: Some(name) }, _) => name.clone(),
        (_, Rights::Portal(_)) => t.portal_session(),
        _ => t.organization_session(),
    }
}
