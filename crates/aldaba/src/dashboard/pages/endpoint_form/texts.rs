//! The texts of the settings of an endpoint.

use crate::dashboard::texts::texts;

texts! {
    EndpointFormTexts {
        new_endpoint() => "Add an endpoint", "Añadir un endpoint";
        edit() => "Edit the endpoint", "Editar el endpoint";
        url() => "URL", "URL";
        url_hint() => "Where messages are sent: it begins with https:// or http://, and is at most 8,192 bytes long.",
            "Adónde se envían los mensajes: empieza por https:// o http://, y tiene como mucho 8192 bytes.";
        name() => "Name", "Nombre";
        name_hint() => "What people call it, on one line of at most 256 bytes. Mails and pages show it.",
            "Cómo se llama, en una línea de 256 bytes como mucho. Los correos y las páginas lo muestran.";
        description() => "Description", "Descripción";
        description_hint() => "Notes for people; at most 4,096 bytes.", "Notas para personas; 4096 bytes como mucho.";
        event_types() => "Event types", "Tipos de evento";
        event_types_hint() => "One in each line, each of them described before; empty: all.",
            "Uno en cada línea, todos descritos antes; vacío: todos.";
        policy() => "Policy", "Política";
        policy_hint() => "Decides when deliveries are retried, and when they are given up.",
            "Decide cuándo se reintentan las entregas y cuándo se abandonan.";
        rate() => "Requests a second", "Peticiones por segundo";
        rate_hint() => "A whole number from 1 to 65535; empty: as many as it takes.",
            "Un número entero de 1 a 65535; vacío: tantas como acepte.";
    }
}
