//! The words for states, reasons and errors.

use super::texts;
use crate::dashboard::components::State;
use crate::questions::Failure;
use aldaba_delivery::{Condition, ConditionCause, FailureKind, Reason};
use aldaba_store::Trigger;

texts! {
    StateTexts {
        state(state: State) => match state {
            State::Delivered => "Delivered",
            State::Retrying => "Retrying",
            State::Dead => "Dead",
            State::Failed => "Failed",
            State::Held => "Held",
            State::Waiting => "Waiting",
            State::Sending => "Sending",
            State::Off => "Off",
            State::Skipped => "Not sent",
            State::Healthy => "Healthy",
        }, match state {
            State::Delivered => "Entregado",
            State::Retrying => "Reintentando",
            State::Dead => "Muerto",
            State::Failed => "Fallido",
            State::Held => "Retenido",
            State::Waiting => "En espera",
            State::Sending => "Enviando",
            State::Off => "Desactivado",
            State::Skipped => "No enviado",
            State::Healthy => "Correcto",
        };
        reason(reason: Reason) => match reason {
            Reason::Exhausted => "Max retries exhausted",
            Reason::Rejected => "Non-retriable error",
            Reason::StopDate => "Stop date reached",
            Reason::EndpointGone => "Endpoint gone",
            Reason::TargetForbidden => "Target address not allowed",
            Reason::Cancelled => "Cancelled",
            Reason::Expired => "Held for too long",
            Reason::PayloadDeleted => "Payload deleted",
        }, match reason {
            Reason::Exhausted => "Reintentos agotados",
            Reason::Rejected => "Error que no se reintenta",
            Reason::StopDate => "Fecha límite alcanzada",
            Reason::EndpointGone => "El endpoint ya no existe",
            Reason::TargetForbidden => "Dirección no permitida",
            Reason::Cancelled => "Cancelado",
            Reason::Expired => "Retenido demasiado tiempo",
            Reason::PayloadDeleted => "Contenido eliminado",
        };
        failure_kind(kind: FailureKind) => match kind {
            FailureKind::Dns => "The name of the host cannot be resolved",
            FailureKind::Connect => "No connection: refused or unreachable",
            FailureKind::ConnectTimeout => "No connection in time",
            FailureKind::Tls => "The certificate or the TLS handshake is not acceptable",
            FailureKind::Timeout => "No answer in time",
            FailureKind::Broken => "The connection broke off",
            FailureKind::Malformed => "The answer is not HTTP, or too large",
            FailureKind::TooManyRedirects => "Too many redirects",
            FailureKind::TargetForbidden => "The address is not allowed",
            FailureKind::Internal => "The attempt could not be made",
            FailureKind::Unsent => "Not sent, for lack of resources of the server",
        }, match kind {
            FailureKind::Dns => "No se puede resolver el nombre del servidor",
            FailureKind::Connect => "Sin conexión: rechazada o inalcanzable",
            FailureKind::ConnectTimeout => "Sin conexión a tiempo",
            FailureKind::Tls => "El certificado o la negociación TLS no son aceptables",
            FailureKind::Timeout => "Sin respuesta a tiempo",
            FailureKind::Broken => "La conexión se cortó",
            FailureKind::Malformed => "La respuesta no es HTTP, o es demasiado grande",
            FailureKind::TooManyRedirects => "Demasiadas redirecciones",
            FailureKind::TargetForbidden => "La dirección no está permitida",
            FailureKind::Internal => "No se pudo hacer el intento",
            FailureKind::Unsent => "No se envió, por falta de recursos del servidor",
        };
        /// Of an attempt or an endpoint.
        unknown_failure() => "No success", "Sin éxito";
        trigger(trigger: Trigger) => match trigger {
            Trigger::Scheduled => "scheduled",
            Trigger::Manual => "by hand",
            Trigger::Replay => "replay",
        }, match trigger {
            Trigger::Scheduled => "programado",
            Trigger::Manual => "a mano",
            Trigger::Replay => "repetición",
        };
        /// The sentence of an endpoint's state. `waits_for_person`: until somebody resumes it.
        condition(condition: Condition, waits_for_person: bool, off: bool) => match condition {
            Condition::Active => "Active",
            Condition::Degraded => "Recent delivery failures (retrying)",
            Condition::Failed if waits_for_person => "Webhook failed (requires manual intervention)",
            Condition::Failed => "Webhook failed (waiting for a probe to succeed)",
            Condition::Blocked => "A delivery has failed for good, and later ones wait behind it (requires manual intervention)",
            Condition::Disabled if off => "Turned off",
            Condition::Disabled => "Gone (the receiver answered 410)",
        }, match condition {
            Condition::Active => "Activo",
            Condition::Degraded => "Fallos recientes de entrega (reintentando)",
            Condition::Failed if waits_for_person => "Webhook fallido (requiere intervención manual)",
            Condition::Failed => "Webhook fallido (a la espera de que una prueba tenga éxito)",
            Condition::Blocked => "Una entrega ha fallado del todo, y las siguientes esperan detrás (requiere intervención manual)",
            Condition::Disabled if off => "Desactivado",
            Condition::Disabled => "Ya no existe (el receptor respondió 410)",
        };
        condition_cause(cause: ConditionCause) => match cause {
            ConditionCause::Failures => "failures",
            ConditionCause::Gone => "the receiver answered 410",
            ConditionCause::Blocked => "a delivery has failed for good",
            ConditionCause::Recovered => "a probe succeeded",
            ConditionCause::Resumed => "resumed by a person",
            ConditionCause::TurnedOff => "turned off by a person",
            ConditionCause::TurnedOn => "turned on by a person",
        }, match cause {
            ConditionCause::Failures => "fallos",
            ConditionCause::Gone => "el receptor respondió 410",
            ConditionCause::Blocked => "una entrega ha fallado del todo",
            ConditionCause::Recovered => "una prueba tuvo éxito",
            ConditionCause::Resumed => "reanudado por una persona",
            ConditionCause::TurnedOff => "desactivado por una persona",
            ConditionCause::TurnedOn => "activado por una persona",
        };
        /// Classes of answers, without an answer first.
        answer_class(class: usize) => match class {
            0 => "No answer".to_owned(),
            class => format!("{class}xx"),
        }, match class {
            0 => "Sin respuesta".to_owned(),
            class => format!("{class}xx"),
        };
    }
}

impl dyn StateTexts + '_ {
    /// What came of an attempt that failed, without the words of another language.
    pub(crate) fn failure(&self, status_code: Option<u16>, kind: Option<FailureKind>) -> String {
        match (status_code, kind) {
            (Some(code), _) => format!("HTTP {code}"),
            (None, Some(kind)) => self.failure_kind(kind),
            (None, None) => self.unknown_failure(),
        }
    }

    pub(crate) fn failure_of(&self, failure: &Failure) -> String {
        self.failure(failure.status_code, failure.kind)
    }
}
