//! The texts of the list of applications.

use crate::dashboard::texts::texts;

texts! {
    AppsTexts {
        title() => "Applications", "Aplicaciones";
        create() => "New application", "Nueva aplicación";
        search() => "Id or uid", "Id o uid";
        none() => "There is no application yet.", "Todavía no hay ninguna aplicación.";
        none_found() => "No application has the id or uid", "Ninguna aplicación tiene el id o uid";
        application() => "Application", "Aplicación";
        health() => "Endpoints", "Endpoints";
        day() => "24 hours", "24 horas";
        attempts() => "Attempts", "Intentos";
        dead() => "Dead", "Muertas";
        many_fail() => "Many fail", "Muchos fallan";
        one_failed() => "1 failed", "1 fallido";
        failed(count: &str) => format!("{count} failed"), format!("{count} fallidos");
        day_of(successes: &str, failures: &str) => format!("{successes} attempts with success, {failures} without"),
            format!("{successes} intentos con éxito, {failures} sin él");
        name() => "Name", "Nombre";
        name_hint() => "What people call this customer.", "Cómo se llama este cliente.";
        uid() => "Your own id", "Su propio id";
        uid_hint() => "1 to 256 letters, digits, “-”, “_” or “.”; it can stand in the place of the id everywhere.",
            "De 1 a 256 letras, cifras, «-», «_» o «.»; puede usarse en lugar del id en todas partes.";
    }
}
