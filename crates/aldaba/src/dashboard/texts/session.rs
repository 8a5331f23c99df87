//! The texts of logging in.

use super::{Format, Tongue, texts};
use crate::dashboard::session::LoginFault;

texts! {
    SessionTexts {
        login_title() => "Log in", "Entrar";
        credential_label() => "API key or token", "Clave de API o token";
        credential_hint() => "On the server's machine, this prints a link that logs you in:",
            "En la máquina del servidor, esta orden muestra un enlace para entrar:";
        login_button() => "Log in", "Entrar";
        what_you_entered_is_kept() => "What you entered is kept, and can be sent after you have logged in.",
            "Lo que ha escrito se conserva, y podrá enviarlo después de entrar.";
        login_fault(fault: &LoginFault) => match fault {
            LoginFault::Empty => "Enter a key or a token.".to_owned(),
            LoginFault::Unknown => "This is no key and no token of this server.".to_owned(),
            LoginFault::Expired => "This key has expired. Make another one.".to_owned(),
            LoginFault::Ended => "This token has been ended before its time. Make another one.".to_owned(),
            LoginFault::IsTheSecret => "This is the secret that signs tokens. Make a token with: aldaba token create".to_owned(),
            LoginFault::Incomplete => "This token does not say whose it is.".to_owned(),
            LoginFault::MayOnlySend => "This key may only send messages. The dashboard needs one that may read.".to_owned(),
            LoginFault::TooLong => "This token is too long for the cookie of a session. Use an API key.".to_owned(),
            LoginFault::TooMany { wait } => format!("Too many attempts. Try again in {}.", Format(Tongue::English).duration(*wait)),
            LoginFault::LinkInvalid => "This link is incomplete, or its 10 minutes are over. Make a fresh one: aldaba dashboard".to_owned(),
            LoginFault::LinkUsed => "This link was used before. Make a fresh one: aldaba dashboard".to_owned(),
            LoginFault::SessionEnded => "Your session has ended. Log in again.".to_owned(),
        }, match fault {
            LoginFault::Empty => "Escriba una clave o un token.".to_owned(),
            LoginFault::Unknown => "No es una clave ni un token de este servidor.".to_owned(),
            LoginFault::Expired => "Esta clave ha caducado. Cree otra.".to_owned(),
            LoginFault::Ended => "Este token se anuló antes de tiempo. Cree otro.".to_owned(),
            LoginFault::IsTheSecret => "Este es el secreto que firma los tokens. Cree un token con: aldaba token create".to_owned(),
            LoginFault::Incomplete => "Este token no dice de quién es.".to_owned(),
            LoginFault::MayOnlySend => "Esta clave solo puede enviar mensajes. El panel necesita una que pueda leer.".to_owned(),
            LoginFault::TooLong => "Este token es demasiado largo para la cookie de una sesión. Use una clave de API.".to_owned(),
            LoginFault::TooMany { wait } => format!("Demasiados intentos. Inténtelo de nuevo en {}.", Format(Tongue::Spanish).duration(*wait)),
            LoginFault::LinkInvalid => "El enlace está incompleto, o sus 10 minutos han pasado. Cree otro: aldaba dashboard".to_owned(),
            LoginFault::LinkUsed => "El enlace ya se ha usado. Cree otro: aldaba dashboard".to_owned(),
            LoginFault::SessionEnded => "Su sesión ha terminado. Vuelva a entrar.".to_owned(),
        };
        link_title() => "Open the dashboard", "Abrir el panel";
        link_text() => "This link logs you in once, with access to everything in the organization.",
            "Este enlace le permite entrar una vez, con acceso a todo lo de la organización.";
        link_button() => "Open", "Abrir";
        kept_title() => "You are logged in again", "Ha vuelto a entrar";
        kept_text() => "What you entered before is still here. It goes to",
            "Lo que había escrito sigue aquí. Se envía a";
        kept_button() => "Send it now", "Enviarlo ahora";
        kept_leave() => "Do not send it", "No enviarlo";
    }
}
