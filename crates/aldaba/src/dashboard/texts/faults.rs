//! The texts of pages that cannot be shown.

use super::texts;
use crate::dashboard::fault::{Fault, RefusedAction};
use crate::questions::Missing;

texts! {
    FaultTexts {
        title(fault: &Fault) => match fault {
            Fault::NoSuchPage | Fault::Elsewhere(_) => "There is no such page",
            Fault::NotFound(_) => "Not found",
            Fault::Forbidden => "You may not do this",
            Fault::CrossSite => "This form came from another site",
            Fault::FormTooLarge => "The form is too large",
            Fault::Unreadable { .. } => "This URL cannot be read",
            Fault::TooMany => "Too many requests",
            Fault::Refused(_) => "Nothing was changed",
            Fault::Busy => "The server is busy",
            Fault::DiskFull => "The disk is full",
            Fault::Server => "Something went wrong on the server",
        }, match fault {
            Fault::NoSuchPage | Fault::Elsewhere(_) => "No existe esa página",
            Fault::NotFound(_) => "No encontrado",
            Fault::Forbidden => "No tiene permiso",
            Fault::CrossSite => "Este formulario viene de otro sitio",
            Fault::FormTooLarge => "El formulario es demasiado grande",
            Fault::Unreadable { .. } => "Esta URL no se entiende",
            Fault::TooMany => "Demasiadas peticiones",
            Fault::Refused(_) => "No se ha cambiado nada",
            Fault::Busy => "El servidor está ocupado",
            Fault::DiskFull => "El disco está lleno",
            Fault::Server => "Algo ha fallado en el servidor",
        };
        text(fault: &Fault) => match fault {
            Fault::NoSuchPage | Fault::Elsewhere(_) => "The address may be misspelled, or from another version.".to_owned(),
            Fault::NotFound(missing) => missing_in_english(*missing).to_owned(),
            Fault::Forbidden => "Your key or token has no right to it. Log in with another one.".to_owned(),
            Fault::CrossSite => "For your safety it was not carried out. Open the dashboard itself, and try again there.".to_owned(),
            Fault::FormTooLarge => "It has more than 256 KiB, or did not arrive in time. Nothing was changed.".to_owned(),
            Fault::Unreadable { name, given } => format!("The part “{name}” cannot be “{given}”. Leave it out to begin anew."),
            Fault::TooMany => "Your organization asks more often than it may. Wait a second, then load the page again.".to_owned(),
            Fault::Refused(refusal) => refusal_in_english(*refusal).to_owned(),
            Fault::Busy => "Nothing was changed. Load the page again in a moment.".to_owned(),
            Fault::DiskFull => "Nothing was changed. Free some space on the server; it goes on by itself.".to_owned(),
            Fault::Server => "The cause is in the server's log.".to_owned(),
        }, match fault {
            Fault::NoSuchPage | Fault::Elsewhere(_) => "Puede que la dirección esté mal escrita, o que sea de otra versión.".to_owned(),
            Fault::NotFound(missing) => missing_in_spanish(*missing).to_owned(),
            Fault::Forbidden => "Su clave o su token no da derecho a ello. Entre con otro.".to_owned(),
            Fault::CrossSite => "Por su seguridad no se ha ejecutado. Abra el panel e inténtelo allí.".to_owned(),
            Fault::FormTooLarge => "Tiene más de 256 KiB, o no llegó a tiempo. No se ha cambiado nada.".to_owned(),
            Fault::Unreadable { name, given } => format!("La parte «{name}» no puede ser «{given}». Quítela para empezar de nuevo."),
            Fault::TooMany => "Su organización hace más peticiones de las que puede. Espere un segundo y cargue la página otra vez.".to_owned(),
            Fault::Refused(refusal) => refusal_in_spanish(*refusal).to_owned(),
            Fault::Busy => "No se ha cambiado nada. Cargue la página otra vez dentro de un momento.".to_owned(),
            Fault::DiskFull => "No se ha cambiado nada. Libere espacio en el servidor; sigue por sí solo.".to_owned(),
            Fault::Server => "La causa está en el registro del servidor.".to_owned(),
        };
        to_overview() => "To the overview", "Ir al resumen";
    }
}

fn missing_in_english(missing: Missing) -> &'static str {
    match missing {
        Missing::Application | Missing::PublicApplication => {
            "There is no such application, or it is not yours."
        }
        Missing::CallerApplication => "The application of your key or token was deleted.",
        Missing::Endpoint | Missing::EndpointId | Missing::AttemptEndpoint => {
            "There is no such endpoint in this application."
        }
        Missing::Message => "There is no such message in this application, or it is not kept any more.",
        Missing::Delivery => "There is no such delivery, or it is not kept any more.",
        Missing::Attempt => "There is no such attempt, or it is not kept any more.",
        Missing::Alert => "There is no such alert.",
        Missing::Replay => "There is no such replay.",
        Missing::Source | Missing::SourceEvent => "There is no such source.",
        Missing::Policy | Missing::Profile => "There is no such policy.",
        _ => "There is no such thing, or it is not yours.",
    }
}

fn missing_in_spanish(missing: Missing) -> &'static str {
    match missing {
        Missing::Application | Missing::PublicApplication => "No existe esa aplicación, o no es suya.",
        Missing::CallerApplication => "La aplicación de su clave o token se ha eliminado.",
        Missing::Endpoint | Missing::EndpointId | Missing::AttemptEndpoint => {
            "No existe ese endpoint en esta aplicación."
        }
        Missing::Message => "No existe ese mensaje en esta aplicación, o ya no se guarda.",
        Missing::Delivery => "No existe esa entrega, o ya no se guarda.",
        Missing::Attempt => "No existe ese intento, o ya no se guarda.",
        Missing::Alert => "No existe esa alerta.",
        Missing::Replay => "No existe esa repetición.",
        Missing::Source | Missing::SourceEvent => "No existe esa fuente.",
        Missing::Policy | Missing::Profile => "No existe esa política.",
        _ => "No existe, o no es suyo.",
    }
}

fn refusal_in_english(refusal: RefusedAction) -> &'static str {
    match refusal {
        RefusedAction::InFlight => "An attempt is being made right now. Look at its result first.",
        RefusedAction::InOrder => {
            "The endpoint gets its messages in order, and this one still waits for its turn."
        }
        RefusedAction::EndpointOff => "The endpoint is off. Turn it on first.",
        RefusedAction::ForAnother => {
            "The message was sent with headers of its own to one address, and goes to no other."
        }
        RefusedAction::NoPayload => "The payload is not kept any more.",
        RefusedAction::TooManyResends => "Many messages are being sent again by hand. Try again in a moment.",
        RefusedAction::Paused => {
            "Nothing can be sent now: the server is stopping, or cannot write to its disk."
        }
        RefusedAction::TurnedOff => "The endpoint was turned off. Turn it on; that resumes it, too.",
        RefusedAction::TooManyReplays => {
            "As many replays of the application are running as may be. Wait until one has ended."
        }
        RefusedAction::TooManyEndpoints => "The application has as many endpoints as it may have.",
        RefusedAction::UidTaken => "Something else has this uid. Choose another one.",
        RefusedAction::NotOrderable => "What waits for the endpoint cannot be put in order now.",
        RefusedAction::TooManyRevocations => {
            "As many tokens are ended before their time as can be remembered. Try again later."
        }
        RefusedAction::Unsettled => "Others keep changing it. Try again.",
        RefusedAction::NothingToDo => "The delivery has succeeded or was discarded already.",
        RefusedAction::Limit => "A limit of the organization does not allow it.",
    }
}

fn refusal_in_spanish(refusal: RefusedAction) -> &'static str {
    match refusal {
        RefusedAction::InFlight => "Se está haciendo un intento en este momento. Mire antes su resultado.",
        RefusedAction::InOrder => "El endpoint recibe sus mensajes en orden, y este todavía espera su turno.",
        RefusedAction::EndpointOff => "El endpoint está desactivado. Actívelo antes.",
        RefusedAction::ForAnother => {
            "El mensaje se envió con cabeceras propias a una sola dirección, y no va a otra."
        }
        RefusedAction::NoPayload => "El contenido ya no se guarda.",
        RefusedAction::TooManyResends => {
            "Se están reenviando muchos mensajes a mano. Inténtelo dentro de un momento."
        }
        RefusedAction::Paused => {
            "Ahora no se puede enviar nada: el servidor se está parando, o no puede escribir en su disco."
        }
        RefusedAction::TurnedOff => "El endpoint se desactivó. Actívelo; eso también lo reanuda.",
        RefusedAction::TooManyReplays => {
            "Hay tantas repeticiones en marcha de la aplicación como se permite. Espere a que termine una."
        }
        RefusedAction::TooManyEndpoints => "La aplicación tiene todos los endpoints que puede tener.",
        RefusedAction::UidTaken => "Otra cosa tiene ese uid. Elija otro.",
        RefusedAction::NotOrderable => "Lo que espera el endpoint no se puede ordenar ahora.",
        RefusedAction::TooManyRevocations => {
            "Hay tantos tokens anulados como se pueden recordar. Inténtelo más tarde."
        }
        RefusedAction::Unsettled => "Otros lo están cambiando. Inténtelo de nuevo.",
        RefusedAction::NothingToDo => "La entrega ya tuvo éxito o se descartó.",
        RefusedAction::Limit => "Un límite de la organización no lo permite.",
    }
}
