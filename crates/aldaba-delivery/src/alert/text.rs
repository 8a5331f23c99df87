//! What people read about an alert, in each language. A text takes all languages at once, so that none can be forgotten.

use super::{AlertLimits, AlertRule};
use crate::Language;

/// The texts of a rule in one language.
#[derive(Clone, Copy, Debug)]
pub struct AlertTexts {
    rule: AlertRule,
    language: Language,
}

impl AlertRule {
    pub fn texts(self, language: Language) -> AlertTexts {
        AlertTexts { rule: self, language }
    }
}

impl AlertTexts {
    /// What is wrong, in a few words.
    pub fn title(self) -> &'static str {
        let pick = |english, spanish| self.language.pick(english, spanish);
        match self.rule {
            AlertRule::DeliveryFailureRate => {
                pick("Many delivery attempts fail", "Muchos intentos de entrega fallan")
            }
            AlertRule::DeliverySuccessRate => {
                pick("Deliveries end without success", "Hay entregas que terminan sin éxito")
            }
            AlertRule::RetryRate => {
                pick("Many deliveries need a retry", "Muchas entregas necesitan un reintento")
            }
            AlertRule::AverageRetries => {
                pick("Deliveries need many retries", "Las entregas necesitan muchos reintentos")
            }
            AlertRule::AttemptDurationP99 => {
                pick("Receivers answer slowly", "Los receptores responden despacio")
            }
            AlertRule::DeliveryLatencyP95 => pick("Events arrive late", "Los eventos llegan tarde"),
            AlertRule::QueueLength => pick("Many deliveries are waiting", "Hay muchas entregas en espera"),
            AlertRule::OldestWaiting => {
                pick("A delivery has waited for long", "Una entrega lleva mucho tiempo en espera")
            }
            AlertRule::FailedEndpoints => pick("Many endpoints have failed", "Muchos endpoints han fallado"),
            AlertRule::EndpointFailing => pick("An endpoint is failing", "Un endpoint está fallando"),
            AlertRule::DeadLetterSize => {
                pick("The dead letter list is long", "La lista de entregas muertas es larga")
            }
            AlertRule::DiskSpace => pick("The disk is almost full", "El disco está casi lleno"),
            AlertRule::NotAccepting => pick("No messages are accepted", "No se aceptan mensajes"),
            AlertRule::TaskRestarting => {
                pick("A background task keeps failing", "Una tarea de fondo falla una y otra vez")
            }
            AlertRule::ClockNotTrusted => {
                pick("The machine's clock is not trusted", "El reloj de la máquina no es de fiar")
            }
            AlertRule::CertificateExpiring => {
                pick("A certificate expires soon", "Un certificado caduca pronto")
            }
        }
    }

    /// What is measured.
    pub fn meaning(self) -> &'static str {
        let pick = |english, spanish| self.language.pick(english, spanish);
        match self.rule {
            AlertRule::DeliveryFailureRate => {
                pick("Share of attempts that failed", "Proporción de intentos que han fallado")
            }
            AlertRule::DeliverySuccessRate => pick(
                "Share of ended deliveries that succeeded, retries included",
                "Proporción de entregas terminadas con éxito, con sus reintentos",
            ),
            AlertRule::RetryRate => pick(
                "Share of deliveries that needed a retry",
                "Proporción de entregas que necesitaron un reintento",
            ),
            AlertRule::AverageRetries => pick("Retries per delivery", "Reintentos por entrega"),
            AlertRule::AttemptDurationP99 => pick(
                "Duration that 99 % of attempts stay below",
                "Duración que el 99 % de los intentos no alcanza",
            ),
            AlertRule::DeliveryLatencyP95 => pick(
                "Time from event to success that 95 % of deliveries stay below, retries included",
                "Tiempo entre el evento y el éxito que el 95 % de las entregas no alcanza, con sus reintentos",
            ),
            AlertRule::QueueLength => {
                pick("Deliveries that wait and could be sent", "Entregas en espera que podrían enviarse")
            }
            AlertRule::OldestWaiting => pick(
                "How long the oldest delivery that could be sent has waited",
                "Cuánto lleva en espera la entrega más antigua que podría enviarse",
            ),
            AlertRule::FailedEndpoints => pick("Endpoints that have failed", "Endpoints que han fallado"),
            AlertRule::EndpointFailing => {
                pick("Failures of an endpoint in a row", "Fallos seguidos de un endpoint")
            }
            AlertRule::DeadLetterSize => {
                pick("Deliveries in the dead letter list", "Entregas en la lista de entregas muertas")
            }
            AlertRule::DiskSpace => pick(
                "Free space on the disk of the data folder",
                "Espacio libre en el disco de la carpeta de datos",
            ),
            AlertRule::NotAccepting => pick(
                "Whether messages can be accepted (1) or not (0)",
                "Si se pueden aceptar mensajes (1) o no (0)",
            ),
            AlertRule::TaskRestarting => pick(
                "Background tasks that were restarted lately",
                "Tareas de fondo que se han reiniciado hace poco",
            ),
            AlertRule::ClockNotTrusted => pick(
                "Whether the machine's clock is trusted (1) or not (0)",
                "Si el reloj de la máquina es de fiar (1) o no (0)",
            ),
            AlertRule::CertificateExpiring => pick(
                "Time until the first certificate expires",
                "Tiempo hasta que caduca el primer certificado",
            ),
        }
    }

    /// What the reader should do.
    pub fn what_to_do(self) -> &'static str {
        let pick = |english, spanish| self.language.pick(english, spanish);
        match self.rule {
            AlertRule::DeliveryFailureRate => pick(
                "See which endpoints fail and why: GET /api/v1/host lists hosts that look down, and the attempts of an endpoint show its answers. Retries go on by themselves.",
                "Mire qué endpoints fallan y por qué: GET /api/v1/host muestra los servidores que parecen caídos, y los intentos de un endpoint muestran sus respuestas. Los reintentos siguen solos.",
            ),
            AlertRule::DeliverySuccessRate => pick(
                "Look at the dead letter list: each delivery has its reason. Repair the receivers, then replay what ended.",
                "Mire la lista de entregas muertas: cada una tiene su motivo. Repare los receptores y repita después lo que terminó.",
            ),
            AlertRule::RetryRate => pick(
                "Receivers answer with errors or not in time at the first attempt. Look at the attempts of the endpoints with the most failures.",
                "Los receptores responden con errores o fuera de plazo al primer intento. Mire los intentos de los endpoints con más fallos.",
            ),
            AlertRule::AverageRetries => pick(
                "Some receivers fail for long. Look for endpoints with many failures in a row, and turn off those that nobody needs.",
                "Algunos receptores fallan durante mucho tiempo. Busque endpoints con muchos fallos seguidos y desactive los que nadie necesita.",
            ),
            AlertRule::AttemptDurationP99 => pick(
                "Receivers should answer first and work afterwards. Find the slow ones by the duration of their attempts; a shorter timeout in their policy frees capacity.",
                "Los receptores deben responder primero y trabajar después. Busque los lentos por la duración de sus intentos; un plazo más corto en su política libera capacidad.",
            ),
            AlertRule::DeliveryLatencyP95 => pick(
                "Deliveries wait or are retried. If many wait, look at limits of rate and of requests in flight; if many are retried, at failing receivers.",
                "Las entregas esperan o se reintentan. Si muchas esperan, mire los límites de ritmo y de peticiones simultáneas; si muchas se reintentan, los receptores que fallan.",
            ),
            AlertRule::QueueLength => pick(
                "See why deliveries wait: the explanation of a delivery names the reason, and GET /api/v1/host the hosts that are held. A short burst needs nothing.",
                "Mire por qué esperan las entregas: la explicación de una entrega da el motivo, y GET /api/v1/host los servidores retenidos. Un pico breve no necesita nada.",
            ),
            AlertRule::OldestWaiting => pick(
                "Find it with GET …/delivery?state=pending. Its explanation names what it waits for: a retry, a held host, a rate, or an order.",
                "Búsquela con GET …/delivery?state=pending. Su explicación dice qué espera: un reintento, un servidor retenido, un ritmo o un orden.",
            ),
            AlertRule::FailedEndpoints => pick(
                "Tell the owners, and resume each endpoint once it is repaired: POST …/endpoint/{id}/resume sends what is held.",
                "Avise a los dueños y reanude cada endpoint cuando esté reparado: POST …/endpoint/{id}/resume envía lo retenido.",
            ),
            AlertRule::EndpointFailing => pick(
                "Look at the last error of the endpoint, and repair its receiver. Retries go on; if it has failed, resume it afterwards.",
                "Mire el último error del endpoint y repare su receptor. Los reintentos siguen; si ha fallado, reanúdelo después.",
            ),
            AlertRule::DeadLetterSize => pick(
                "Look at the reasons in the dead letter list. Repair the receivers, then replay; discard what nobody needs.",
                "Mire los motivos en la lista de entregas muertas. Repare los receptores y repita después; descarte lo que nadie necesita.",
            ),
            AlertRule::DiskSpace => pick(
                "Make room on the disk of the data folder, or keep less: shorter retention periods. When the disk is full, new messages are refused.",
                "Libere espacio en el disco de la carpeta de datos o guarde menos: plazos de retención más cortos. Con el disco lleno se rechazan los mensajes nuevos.",
            ),
            AlertRule::NotAccepting => pick(
                "GET /api/v1/health/ready says why: the disk has less room than `low_space_bytes`, or nothing can be written to the database. Make room, or look at the log and the disk. Accepting goes on by itself.",
                "GET /api/v1/health/ready dice por qué: el disco tiene menos espacio que `low_space_bytes`, o no se puede escribir en la base de datos. Libere espacio, o mire el registro y el disco. Se vuelve a aceptar solo.",
            ),
            AlertRule::TaskRestarting => pick(
                "The log has an error with the name of the task. GET /api/v1/health lists it until it has run well. Please report it.",
                "El registro tiene un error con el nombre de la tarea. GET /api/v1/health la muestra hasta que funcione bien. Comuníquelo, por favor.",
            ),
            AlertRule::ClockNotTrusted => pick(
                "Set the machine's clock right. If it is right, run `aldaba clock trust`. Until then nothing is removed and nothing ends by time.",
                "Ponga en hora el reloj de la máquina. Si está bien, ejecute `aldaba clock trust`. Hasta entonces no se borra nada y nada termina por tiempo.",
            ),
            AlertRule::CertificateExpiring => pick(
                "Replace it before deliveries fail. A client certificate of an endpoint: GET …/endpoint/{id}/mtls says when it expires, and PUT replaces it. One of the setting `ca_file`: put its successor into the file, and restart the server. That of `tls_certificate`: put its successor into its files; it is taken at once. The metric says which kind it is.",
                "Sustitúyalo antes de que fallen las entregas. El certificado de cliente de un endpoint: GET …/endpoint/{id}/mtls dice cuándo caduca, y PUT lo cambia. Uno del ajuste `ca_file`: ponga su sucesor en el fichero y reinicie el servidor. El de `tls_certificate`: ponga su sucesor en sus ficheros; se toma al momento. La métrica dice de qué tipo es.",
            ),
        }
    }

    /// The value beside its limit: `12 % (limit: 10 %)`.
    pub fn value(self, value: Option<f64>, limits: &AlertLimits) -> String {
        let unit = self.rule.unit();
        let value =
            value.map_or_else(|| self.language.pick("nothing", "nada").to_owned(), |value| unit.show(value));
        format!("{value} ({}: {})", self.language.pick("limit", "límite"), unit.show(limits.threshold))
    }

    pub fn firing(self) -> &'static str {
        self.language.pick("Alert", "Alerta")
    }

    pub fn resolved(self) -> &'static str {
        self.language.pick("Resolved", "Resuelta")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_differs_between_the_languages_and_is_a_sentence_for_people() {
        for rule in AlertRule::ALL {
            let [english, spanish] = Language::ALL.map(|language| rule.texts(language));
            assert_ne!(english.title(), spanish.title(), "{rule}");
            assert_ne!(english.meaning(), spanish.meaning(), "{rule}");
            assert_ne!(english.what_to_do(), spanish.what_to_do(), "{rule}");
            for texts in [english, spanish] {
                assert!(texts.what_to_do().ends_with('.'), "{rule}");
                assert!(!texts.title().ends_with('.'), "{rule}");
            }
        }
    }

    #[test]
    fn a_value_is_shown_beside_its_limit() {
        let (rule, limits) =
            (AlertRule::DeliveryFailureRate, AlertRule::DeliveryFailureRate.default_limits());
        assert_eq!(rule.texts(Language::English).value(Some(0.5), &limits), "50 % (limit: 10 %)");
        assert_eq!(rule.texts(Language::Spanish).value(None, &limits), "nada (límite: 10 %)");
    }
}
