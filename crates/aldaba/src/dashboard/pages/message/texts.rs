//! The texts of one message.

use crate::dashboard::texts::texts;

texts! {
    MessageTexts {
        event_type() => "Event type", "Tipo de evento";
        accepted() => "Accepted", "Aceptado";
        deliver_at() => "To be sent from", "Se envía a partir de";
        channels() => "Channels", "Canales";
        tags() => "Tags", "Etiquetas";
        deliveries() => "Deliveries", "Entregas";
        no_deliveries() => "No endpoint wanted it: none subscribed to it when it was accepted.",
            "Ningún endpoint lo quería: ninguno estaba suscrito cuando se aceptó.";
        more_endpoints() => "It goes to more endpoints than are shown here. The API lists all.",
            "Va a más endpoints de los que se muestran aquí. La API los muestra todos.";
        next_attempt() => "Next attempt:", "Siguiente intento:";
        attempt() => "Attempt", "Intento";
        planned(after: &str) => format!("Planned (+{after})"), format!("Planeado (+{after})");
        timeline() => "Attempts in time: filled, answered well; open, not; dashed, planned",
            "Intentos en el tiempo: relleno, bien respondido; abierto, no; a trazos, planeado";
        attempts() => "Attempts", "Intentos";
        time() => "Time", "Hora";
        result() => "Result", "Resultado";
        duration() => "Duration", "Duración";
        trigger() => "Trigger", "Origen";
        response() => "Response", "Respuesta";
        resend() => "Send again", "Reenviar";
        copy_curl() => "Copy as curl", "Copiar como curl";
        as_curl() => "As a curl command", "Como orden de curl";
        payload() => "Payload", "Contenido";
        download() => "Download", "Descargar";
        payload_deleted() => "The payload was deleted.", "El contenido se eliminó.";
        only_the_beginning(size: &str) => format!("Only the first {size} are shown. The file has all of it."),
            format!("Solo se muestran los primeros {size}. El archivo lo tiene todo.");
        not_text() => "It is no text. The file has its exact bytes.", "No es texto. El archivo tiene sus bytes exactos.";
    }
}
