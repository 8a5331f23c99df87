//! The texts of one application.

use crate::dashboard::texts::texts;

texts! {
    AppTexts {
        endpoints() => "Endpoints", "Endpoints";
        add_endpoint() => "Add an endpoint", "Añadir un endpoint";
        no_endpoints() => "No endpoint yet: nothing is sent. Add the URL that is to receive the events of this customer.",
            "Todavía no hay ningún endpoint: no se envía nada. Añada la URL que recibirá los eventos de este cliente.";
        endpoint() => "Endpoint", "Endpoint";
        state() => "State", "Estado";
        types() => "Event types", "Tipos de evento";
        all_types() => "all", "todos";
        waiting() => "Waiting", "En espera";
        last_failure() => "Last failure", "Último fallo";
        all_endpoints(count: &str) => format!("All {count} endpoints"), format!("Los {count} endpoints");
        the_worst_first() => "The worst come first.", "Los peores van primero.";
        back_to_messages() => "Back to the messages", "Volver a los mensajes";
        messages() => "Messages", "Mensajes";
        no_messages() => "No message yet. Send one over the API.", "Todavía no hay mensajes. Envíe uno por la API.";
        no_messages_found() => "No message found here.", "No se ha encontrado ningún mensaje aquí.";
        event_type() => "Event type", "Tipo de evento";
        filter() => "Filter", "Filtrar";
        accepted() => "Accepted", "Aceptado";
        message() => "Message", "Mensaje";
        newer(count: &str, is_one: bool) => if is_one { "1 new".to_owned() } else { format!("{count} new") },
            if is_one { "1 nuevo".to_owned() } else { format!("{count} nuevos") };
    }
}
