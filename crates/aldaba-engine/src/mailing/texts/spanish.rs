//! The texts in Spanish.

use super::MailTexts;

pub(super) struct Spanish;

impl MailTexts for Spanish {
    fn warning_subject(&self, name: &str, failures: u32) -> String {
        format!("El webhook '{name}' está fallando: {failures} fallos seguidos")
    }

    fn warning_text(&self, name: &str, failures: u32) -> String {
        format!(
            "Las últimas {failures} peticiones al webhook '{name}' han fallado. Se reintentan; si conoce el motivo, no tiene \
             que hacer nada."
        )
    }

    fn given_up_subject(&self, name: &str) -> String {
        format!("El webhook '{name}' sigue fallando: se ha abandonado una entrega")
    }

    fn given_up_text(&self, name: &str) -> String {
        format!(
            "Se ha abandonado una entrega al webhook '{name}': su política no permite más reintentos. Se guarda en la lista \
             de entregas fallidas. Los mensajes nuevos se siguen enviando, y se abandonarán más mientras el webhook falle."
        )
    }

    fn failed_subject(&self, name: &str, retries: u32) -> String {
        let noun = if retries == 1 { "reintento" } else { "reintentos" };
        format!("El webhook '{name}' ha fallado tras {retries} {noun}")
    }

    fn failed_text(&self, name: &str, retries: u32) -> String {
        let noun = if retries == 1 { "reintento" } else { "reintentos" };
        format!(
            "Se ha abandonado una entrega al webhook '{name}' tras {retries} {noun}. No se le envía nada más."
        )
    }

    fn without_success_subject(&self, name: &str) -> String {
        format!("El webhook '{name}' ha fallado: mucho tiempo sin ningún éxito")
    }

    fn without_success_text(&self, name: &str) -> String {
        format!(
            "Ninguna entrega al webhook '{name}' ha tenido éxito en todo el tiempo que permite su política."
        )
    }

    fn gone_subject(&self, name: &str) -> String {
        format!("El webhook '{name}' ha fallado: su receptor ya no existe (410)")
    }

    fn gone_text(&self, name: &str) -> String {
        format!(
            "El receptor del webhook '{name}' ha respondido 410 Gone: no quiere más peticiones. No se le envía nada más."
        )
    }

    fn blocked_subject(&self, name: &str) -> String {
        format!("El webhook '{name}' está bloqueado: una entrega ha terminado sin éxito")
    }

    fn blocked_text(&self, name: &str) -> String {
        format!(
            "Una entrega al webhook '{name}' ha terminado sin éxito. Se entrega en orden y ningún mensaje puede adelantar a \
             otro: no se envía nada más hasta que alguien decida."
        )
    }

    fn recovered_subject(&self, name: &str) -> String {
        format!("El webhook '{name}' vuelve a funcionar")
    }

    fn recovered_text(&self, name: &str) -> String {
        format!("Una entrega al webhook '{name}' ha tenido éxito. Los mensajes retenidos se están enviando.")
    }

    fn resumed_subject(&self, name: &str) -> String {
        format!("El webhook '{name}' se ha reanudado")
    }

    fn resumed_text(&self, name: &str) -> String {
        format!("Alguien ha reanudado el webhook '{name}'. Los mensajes retenidos se están enviando.")
    }

    fn nothing_is_lost(&self) -> String {
        "Los mensajes nuevos se guardan y se enviarán cuando el webhook se reanude.".into()
    }

    fn recovers_by_itself(&self) -> String {
        "De vez en cuando se envía una prueba. En cuanto una tenga éxito, las entregas continuarán por sí solas.".into()
    }

    fn how_to_resume(&self) -> String {
        "Cuando el receptor vuelva a funcionar, reanude el webhook con un token de su aplicación:".into()
    }

    fn how_to_recover(&self) -> String {
        "Cuando el receptor vuelva a funcionar, envíe de nuevo todo lo abandonado con un token de su aplicación:".into()
    }

    fn endpoint_label(&self) -> String {
        "Webhook".into()
    }

    fn application_label(&self) -> String {
        "Aplicación".into()
    }

    fn error_label(&self) -> String {
        "Último error".into()
    }

    fn since_label(&self) -> String {
        "Falla desde".into()
    }

    fn pending_label(&self) -> String {
        "Entregas en espera".into()
    }

    fn more_than(&self, count: usize) -> String {
        format!("más de {count}")
    }

    fn unnamed_error(&self) -> String {
        "desconocido".into()
    }

    fn about_link(&self) -> String {
        "Qué significan los estados y qué puede hacer".into()
    }

    fn digest_subject(&self, count: usize) -> String {
        format!("{count} avisos sobre sus webhooks")
    }

    fn digest_text(&self, count: usize) -> String {
        format!("Han ocurrido {count} cosas en sus webhooks, primero la más antigua:")
    }

    fn and_more(&self, count: u32) -> String {
        format!("Y {count} más que no aparecen en la lista.")
    }

    fn confirm_subject(&self) -> String {
        "Confirme su dirección de correo".into()
    }

    fn confirm_text(&self, address: &str, server: &str) -> String {
        format!(
            "Alguien ha indicado {address} en {server} como la dirección a la que se avisa cuando falla un webhook. Si desea \
             recibir esos avisos, confírmela:"
        )
    }

    fn confirm_link(&self) -> String {
        "Confirmar esta dirección".into()
    }

    fn confirm_ignore(&self) -> String {
        "Si no esperaba este correo, ignórelo: no recibirá otros. El enlace sirve durante 7 días.".into()
    }

    fn why_you(&self, address: &str) -> String {
        format!("{address} recibe este correo porque es la dirección para los problemas de este webhook.")
    }

    fn unsubscribe_link(&self) -> String {
        "No recibir más correos sobre este webhook".into()
    }

    fn unsubscribe_application_link(&self) -> String {
        "No recibir más correos sobre esta aplicación".into()
    }

    fn unsubscribe_all_link(&self) -> String {
        "No recibir más correos sobre ninguno de sus webhooks aquí".into()
    }

    fn why_you_digest(&self, address: &str) -> String {
        format!("{address} recibe este correo porque es la dirección para los problemas de estos webhooks.")
    }

    fn alerts_subject(&self, count: usize) -> String {
        format!("{count} alertas sobre el servidor")
    }

    fn alerts_text(&self, count: usize) -> String {
        format!("{count} alertas se han disparado o resuelto, primero las críticas:")
    }

    fn unsubscribe_all_question(&self, address: &str) -> String {
        format!("¿No enviar a {address} más correos sobre ningún webhook de este remitente?")
    }

    fn unsubscribed_from_all(&self, address: &str) -> String {
        format!("{address} no recibirá más correos sobre ningún webhook de este remitente.")
    }

    fn subscribed_to_all(&self, address: &str) -> String {
        format!("{address} vuelve a recibir correos sobre los webhooks de este remitente.")
    }

    fn test_subject(&self) -> String {
        "Un correo de prueba de Aldaba".into()
    }

    fn test_text(&self) -> String {
        "Este correo lo ha enviado `aldaba mail test`. El servidor de correo lo ha aceptado y ha llegado."
            .into()
    }

    fn unsubscribe_title(&self) -> String {
        "Cancelar los avisos".into()
    }

    fn unsubscribe_question(&self, address: &str) -> String {
        format!("¿No enviar más correos sobre este webhook a {address}?")
    }

    fn unsubscribe_button(&self) -> String {
        "Cancelar los avisos".into()
    }

    fn unsubscribed(&self, address: &str) -> String {
        format!("{address} no recibirá más correos sobre este webhook.")
    }

    fn subscribe_button(&self) -> String {
        "Volver a recibirlos".into()
    }

    fn subscribed(&self, address: &str) -> String {
        format!("{address} vuelve a recibir correos sobre este webhook.")
    }

    fn confirm_title(&self) -> String {
        "Confirme su dirección de correo".into()
    }

    fn confirm_question(&self, address: &str) -> String {
        format!("¿Enviar a {address} los avisos sobre webhooks que fallan?")
    }

    fn confirm_button(&self) -> String {
        "Confirmar".into()
    }

    fn confirmed(&self, address: &str) -> String {
        format!("{address} está confirmada.")
    }

    fn unknown_link(&self) -> String {
        "El enlace está incompleto o no lo ha hecho este servidor. Cópielo entero del correo.".into()
    }

    fn expired_link(&self) -> String {
        "El enlace ha caducado. Con el próximo correo se envía uno nuevo.".into()
    }
}
