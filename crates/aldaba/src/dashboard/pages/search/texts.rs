//! The texts of the search.

use crate::dashboard::texts::texts;

texts! {
    SearchTexts {
        title() => "Search", "Buscar";
        found() => "Found", "Encontrado";
        nothing() => "Nothing has this id, uid, event id or beginning of a URL:", "Nada tiene este id, uid, id de evento o comienzo de URL:";
        how() => "Enter a whole id, uid or event id, or the beginning of the URL of an endpoint.",
            "Escriba un id, uid o id de evento completo, o el comienzo de la URL de un endpoint.";
    }
}
