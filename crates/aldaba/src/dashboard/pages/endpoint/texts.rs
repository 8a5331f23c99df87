//! The texts of one endpoint.

use crate::dashboard::texts::texts;

texts! {
    EndpointTexts {
        since() => "since", "desde";
        last_failure() => "Last failure:", "Último fallo:";
        next_probe() => "The next probe:", "La siguiente prueba:";
        quiet_until() => "The receiver asked for a pause until", "El receptor pidió una pausa hasta";
        waiting() => "Waiting:", "En espera:";
        warning(failures: &str) => format!("{failures} failures in a row. Retries go on; the endpoint may fail if its receiver is not repaired."),
            format!("{failures} fallos seguidos. Los reintentos siguen; el endpoint puede fallar si no se repara el receptor.");
        resume() => "Resume", "Reanudar";
        resume_and_recover() => "Resume and recover", "Reanudar y recuperar";
        resume_hint() => "Resume releases what is held. Resume and recover also sends again what died in the outage.",
            "Reanudar libera lo retenido. Reanudar y recuperar envía además lo que murió en la caída.";
        turn_off() => "Turn off", "Desactivar";
        turn_on() => "Turn on", "Activar";
        edit() => "Edit", "Editar";
        dead_letter() => "Its dead letter", "Sus entregas muertas";
        last_day() => "The last 24 hours", "Las últimas 24 horas";
        answers() => "Answers by hour", "Respuestas por hora";
        times() => "Duration of attempts by hour", "Duración de los intentos por hora";
        median() => "Half are faster than", "La mitad tarda menos de";
        slow() => "95 % are faster than", "El 95 % tarda menos de";
        settings() => "Settings", "Configuración";
        event_types() => "Event types", "Tipos de evento";
        channels() => "Channels", "Canales";
        all() => "all", "todos";
        policy() => "Policy", "Política";
        profile() => "Wire profile", "Perfil de envío";
        schedule() => "Attempts by the policy, while nobody answers", "Intentos según la política, mientras nadie responde";
        attempt() => "Attempt", "Intento";
        earliest() => "From", "Desde";
        latest() => "To", "Hasta";
        rate() => "Rate", "Ritmo";
        a_second(count: &str) => format!("at most {count} a second"), format!("como mucho {count} por segundo");
        filter() => "Filter", "Filtro";
        description() => "Description", "Descripción";
        created() => "Created", "Creado";
        history() => "History", "Historial";
        no_history() => "It has always been active.", "Siempre ha estado activo.";
        attempts() => "Attempts", "Intentos";
        only_failures() => "Failures only", "Solo fallos";
        no_attempts() => "No attempt here.", "No hay intentos aquí.";
        time() => "Time", "Hora";
        message() => "Message", "Mensaje";
        result() => "Result", "Resultado";
        duration() => "Duration", "Duración";
        trigger() => "Trigger", "Origen";
    }
}
