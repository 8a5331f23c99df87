//! The texts around every page.

use super::texts;
use crate::dashboard::shell::{Place, Theme};

texts! {
    ShellTexts {
        skip() => "Skip to the content", "Ir al contenido";
        navigation() => "Pages", "Páginas";
        place(place: Place) => match place {
            Place::Overview | Place::Elsewhere => "Overview",
            Place::Apps => "Applications",
            Place::DeadLetter => "Dead letter",
        }, match place {
            Place::Overview | Place::Elsewhere => "Resumen",
            Place::Apps => "Aplicaciones",
            Place::DeadLetter => "Entregas muertas",
        };
        language() => "Language", "Idioma";
        colours() => "Colours", "Colores";
        theme(theme: Theme) => match theme {
            Theme::Auto => "Auto",
            Theme::Light => "Light",
            Theme::Dark => "Dark",
        }, match theme {
            Theme::Auto => "Sistema",
            Theme::Light => "Claro",
            Theme::Dark => "Oscuro",
        };
        search() => "Search", "Buscar";
        search_hint() => "Id, uid, event id or URL", "Id, uid, id de evento o URL";
        logged_in_as() => "Logged in:", "Sesión:";
        log_out() => "Log out", "Salir";
        organization_session() => "organization token", "token de la organización";
        portal_session() => "portal token", "token del portal";
        copy() => "Copy", "Copiar";
        copied() => "Copied", "Copiado";
        /// Of a list.
        next() => "Next", "Siguientes";
        first() => "First", "Primeras";
        all() => "All", "Todo";
        as_table() => "As a table", "En una tabla";
        hour() => "Hour (UTC)", "Hora (UTC)";
    }
}
