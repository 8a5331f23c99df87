//! The texts of the dead letter.

use crate::dashboard::texts::texts;

texts! {
    DeadLetterTexts {
        title() => "Dead letter", "Entregas muertas";
        about() => "Deliveries that ended without success. Nothing more is sent for them until a person decides.",
            "Entregas que terminaron sin éxito. No se envía nada más de ellas hasta que una persona lo decida.";
        none() => "Nothing is here: no delivery has ended without success.", "Aquí no hay nada: ninguna entrega ha terminado sin éxito.";
        none_selected() => "Nothing is here with this filter.", "Aquí no hay nada con este filtro.";
        in_all(count: &str) => format!("{count} in all"), format!("{count} en total");
        by_reason() => "By endpoint and reason", "Por endpoint y motivo";
        endpoint() => "Endpoint", "Endpoint";
        reason() => "Reason", "Motivo";
        any_reason() => "any", "cualquiera";
        count() => "Count", "Número";
        message() => "Message", "Mensaje";
        ended() => "Ended", "Terminó";
        application() => "Application", "Aplicación";
        filter() => "Filter", "Filtrar";
        retry() => "Retry", "Reintentar";
        discard() => "Discard", "Descartar";
        deliveries() => "Deliveries", "Entregas";
        choose_endpoint() => "Choose an endpoint above to retry or discard all that it has here.",
            "Elija arriba un endpoint para reintentar o descartar todo lo que tiene aquí.";
        replay() => "Retry all of this endpoint …", "Reintentar todo lo de este endpoint …";
        discard_all() => "Discard all of this selection", "Descartar toda esta selección";
        discard_question() => "They leave the dead letter for good. Their history stays. At most 2,000 go at once.",
            "Dejan de estar aquí para siempre. Su historial se conserva. Se descartan como mucho 2000 de una vez.";
        replay_title() => "Retry the dead deliveries of an endpoint", "Reintentar las entregas muertas de un endpoint";
        replay_text(count: &str) => format!("{count} deliveries get a new round of attempts, by the endpoint's policy. What dies later is not among them."),
            format!("{count} entregas reciben una nueva ronda de intentos, según la política del endpoint. Lo que muera después no está entre ellas.");
        replay_none() => "There is nothing to retry: what died here was cancelled, or its message is not kept any more.",
            "No hay nada que reintentar: lo que murió aquí se canceló, o su mensaje ya no se guarda.";
        replay_button() => "Retry them now", "Reintentarlas ahora";
        back() => "Back", "Volver";
    }
}
