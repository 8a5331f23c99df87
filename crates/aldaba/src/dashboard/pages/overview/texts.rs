//! The texts of the overview.

use crate::dashboard::texts::texts;

texts! {
    OverviewTexts {
        title() => "Overview", "Resumen";
        needs_you() => "Needs your attention", "Necesita su atención";
        all_well() => "Nothing needs you. Everything that could be delivered has been, or is on its way.",
            "Nada le necesita. Todo lo que se podía entregar se ha entregado, o va de camino.";
        since() => "since", "desde";
        endpoint_to_do(needs_resume: bool) => if needs_resume {
            "See why it failed, have the receiver repaired, then resume it."
        } else {
            "Retries go on by themselves. See what the receiver answers."
        }, if needs_resume {
            "Mire por qué ha fallado, haga reparar el receptor y reanúdelo."
        } else {
            "Los reintentos siguen solos. Mire qué responde el receptor."
        };
        more_endpoints(count: &str) => format!("{count} more endpoints"), format!("{count} endpoints más");
        dead(count: &str, is_one: bool) => if is_one {
            "1 delivery in the dead letter".to_owned()
        } else {
            format!("{count} deliveries in the dead letter")
        }, if is_one {
            "1 entrega muerta".to_owned()
        } else {
            format!("{count} entregas muertas")
        };
        dead_to_do() => "Each has its reason. Repair the receiver, then retry them, or discard them.",
            "Cada una tiene su motivo. Repare el receptor y reinténtelas, o descártelas.";
        figures() => "Now", "Ahora";
        success_rate() => "Success rate", "Tasa de éxito";
        in_the_last_hour(count: &str) => format!("of {count} ended in the last hour"), format!("de {count} terminadas en la última hora");
        latency() => "Event to delivery", "Del evento a la entrega";
        latency_about() => "95 % are faster", "el 95 % tarda menos";
        queue_age() => "Oldest waiting", "Espera más larga";
        waiting(count: &str) => format!("{count} waiting in all"), format!("{count} en espera en total");
        held() => "Held or for later", "Retenidas o para más tarde";
        held_about() => "not to be sent now", "no se envían ahora";
        day() => "The last 24 hours", "Las últimas 24 horas";
        delivered() => "delivered", "entregadas";
        tried_again() => "failed, tried again", "fallidas, se reintentan";
        died() => "dead", "muertas";
        first_steps() => "First steps", "Primeros pasos";
        first_steps_text() => "There is no application yet. An application is a customer of yours; an endpoint is a URL of theirs.",
            "Todavía no hay ninguna aplicación. Una aplicación es un cliente suyo; un endpoint es una URL de ese cliente.";
        first_application() => "Create the first application", "Crear la primera aplicación";
    }
}
