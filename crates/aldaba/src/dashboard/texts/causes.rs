//! Why a delivery waits, or how it has ended. The moment of the next attempt is shown beside it.

use super::{StateTexts, Tongue, texts};
use crate::questions::Cause;
use aldaba_delivery::{GateScope, HealthStatus};

texts! {
    CauseTexts {
        cause(cause: &Cause) => in_english(cause), in_spanish(cause);
    }
}

fn in_english(cause: &Cause) -> String {
    let states = <dyn StateTexts>::of(Tongue::English);
    match cause {
        Cause::Skipped(_) => "The endpoint was off when the message came. A replay of what is missing sends it".into(),
        Cause::Delivered { attempt, .. } => format!("Delivered by attempt {attempt}"),
        Cause::Dead { reason, attempts, failure, .. } => {
            let after = match attempts {
                0 => "without an attempt".to_owned(),
                1 => "after 1 attempt".to_owned(),
                _ => format!("after {attempts} attempts"),
            };
            let error = failure.as_ref().map(|failure| format!("; the last error: {}", states.failure_of(failure)));
            format!("{}, {after}{}", states.reason(*reason), error.unwrap_or_default())
        }
        Cause::EndpointDeleted | Cause::NoEndpoint => "The endpoint is deleted; what waits for it is being cancelled".into(),
        Cause::InFlight { attempt } => format!("Attempt {attempt} is being made"),
        Cause::EndpointDisabled => "The endpoint is off; it is sent when it is turned on again".into(),
        Cause::NeedsResume(HealthStatus::Blocked) => {
            "An earlier message has died, and the endpoint gets them in order. It waits for someone to resume it".into()
        }
        Cause::NeedsResume(HealthStatus::Gone) => "The receiver answered 410 (Gone), which turned the endpoint off".into(),
        Cause::NeedsResume(_) => "The endpoint has failed, and waits for someone to resume it".into(),
        Cause::ProbeFirst => "The endpoint has failed; one delivery goes first, as a probe".into(),
        Cause::ReceiverBusy { .. } => "The receiver asked for a pause (Retry-After)".into(),
        Cause::FailedUntilProbe { .. } => "The endpoint has failed; it is probed next".into(),
        Cause::HostHeld { scope, .. } => match scope {
            GateScope::Host => "The host cannot be reached; a probe goes first".into(),
            GateScope::Application(_) => "The host fails for this application; a probe goes first".into(),
        },
        Cause::TakesPlaceAt(_) => "For later: it takes its place in the endpoint's order then".into(),
        Cause::InOrder => "Waits for an earlier message: the endpoint gets them in order".into(),
        Cause::Paused => "Nothing is sent now: the server is stopping, its disk cannot be written, or its operator has paused it".into(),
        Cause::FirstPlanned { .. } => "The first attempt is planned".into(),
        Cause::RetryPlanned { retry, of, failure, .. } => {
            let of = of.map(|most| format!(" of {most}")).unwrap_or_default();
            let error = failure.as_ref().map_or_else(|| states.unknown_failure(), |failure| states.failure_of(failure));
            format!("Retry {retry}{of} is planned, after: {error}")
        }
        Cause::Throttled { rate } => format!("Due; the endpoint gets at most {rate} requests a second"),
        Cause::ApplicationThrottled => "Due; the application's endpoints have had as many requests as its rate allows".into(),
        Cause::HostBusy => "Due; as many requests are on their way to the host as may be".into(),
        Cause::Due => "Due; it waits for its turn".into(),
        Cause::EndpointNewer => "The endpoint was created after the message was accepted".into(),
        Cause::ForAnotherEndpoint => "The message is an example for another endpoint".into(),
        Cause::EventTypeNotSubscribed { .. } => "The endpoint does not subscribe to this event type".into(),
        Cause::ChannelNotSubscribed => "The message has none of the endpoint's channels".into(),
        Cause::FilteredAt { .. } => "The endpoint's filter keeps it back".into(),
        Cause::FilteredUnknown => "The endpoint has a filter, and the payload was deleted".into(),
        Cause::SubscriptionChanged => "The endpoint did not want it when it was accepted. As it is now, it would".into(),
    }
}

fn in_spanish(cause: &Cause) -> String {
    let states = <dyn StateTexts>::of(Tongue::Spanish);
    match cause {
        Cause::Skipped(_) => "El endpoint estaba desactivado cuando llegó el mensaje. Una repetición de lo que falta lo envía".into(),
        Cause::Delivered { attempt, .. } => format!("Entregado en el intento {attempt}"),
        Cause::Dead { reason, attempts, failure, .. } => {
            let after = match attempts {
                0 => "sin ningún intento".to_owned(),
                1 => "tras 1 intento".to_owned(),
                _ => format!("tras {attempts} intentos"),
            };
            let error = failure.as_ref().map(|failure| format!("; el último error: {}", states.failure_of(failure)));
            format!("{}, {after}{}", states.reason(*reason), error.unwrap_or_default())
        }
        Cause::EndpointDeleted | Cause::NoEndpoint => "El endpoint se ha eliminado; lo que lo espera se está cancelando".into(),
        Cause::InFlight { attempt } => format!("Se está haciendo el intento {attempt}"),
        Cause::EndpointDisabled => "El endpoint está desactivado; se envía cuando se active de nuevo".into(),
        Cause::NeedsResume(HealthStatus::Blocked) => {
            "Un mensaje anterior ha muerto, y el endpoint los recibe en orden. Espera a que alguien lo reanude".into()
        }
        Cause::NeedsResume(HealthStatus::Gone) => "El receptor respondió 410 (Gone), lo que desactivó el endpoint".into(),
        Cause::NeedsResume(_) => "El endpoint ha fallado, y espera a que alguien lo reanude".into(),
        Cause::ProbeFirst => "El endpoint ha fallado; una entrega va primero, como prueba".into(),
        Cause::ReceiverBusy { .. } => "El receptor pidió una pausa (Retry-After)".into(),
        Cause::FailedUntilProbe { .. } => "El endpoint ha fallado; se prueba a continuación".into(),
        Cause::HostHeld { scope, .. } => match scope {
            GateScope::Host => "No se puede llegar al servidor; va primero una prueba".into(),
            GateScope::Application(_) => "El servidor falla para esta aplicación; va primero una prueba".into(),
        },
        Cause::TakesPlaceAt(_) => "Para más tarde: entonces toma su lugar en el orden del endpoint".into(),
        Cause::InOrder => "Espera a un mensaje anterior: el endpoint los recibe en orden".into(),
        Cause::Paused => "Ahora no se envía nada: el servidor se está parando, no puede escribir en su disco, o su operador lo ha pausado".into(),
        Cause::FirstPlanned { .. } => "El primer intento está planeado".into(),
        Cause::RetryPlanned { retry, of, failure, .. } => {
            let of = of.map(|most| format!(" de {most}")).unwrap_or_default();
            let error = failure.as_ref().map_or_else(|| states.unknown_failure(), |failure| states.failure_of(failure));
            format!("El reintento {retry}{of} está planeado, después de: {error}")
        }
        Cause::Throttled { rate } => format!("Pendiente; el endpoint recibe como mucho {rate} peticiones por segundo"),
        Cause::ApplicationThrottled => "Pendiente; los endpoints de la aplicación han tenido tantas peticiones como permite su límite".into(),
        Cause::HostBusy => "Pendiente; hay tantas peticiones de camino al servidor como se permite".into(),
        Cause::Due => "Pendiente; espera su turno".into(),
        Cause::EndpointNewer => "El endpoint se creó después de aceptar el mensaje".into(),
        Cause::ForAnotherEndpoint => "El mensaje es un ejemplo para otro endpoint".into(),
        Cause::EventTypeNotSubscribed { .. } => "El endpoint no está suscrito a este tipo de evento".into(),
        Cause::ChannelNotSubscribed => "El mensaje no tiene ninguno de los canales del endpoint".into(),
        Cause::FilteredAt { .. } => "El filtro del endpoint no lo deja pasar".into(),
        Cause::FilteredUnknown => "El endpoint tiene un filtro, y el contenido se eliminó".into(),
        Cause::SubscriptionChanged => "El endpoint no lo quería cuando se aceptó. Tal como está ahora, sí".into(),
    }
}
