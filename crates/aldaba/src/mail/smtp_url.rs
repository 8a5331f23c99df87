//! The URL of a mail server, with its user and password.

use percent_encoding::percent_decode_str;
use std::fmt;
use std::net::IpAddr;
use url::{Host, Url};

/// Where mails are handed over, and how. Its password is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SmtpUrl {
    pub host: String,
    pub port: u16,
    pub encryption: SmtpEncryption,
    /// User and password.
    pub credentials: Option<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpEncryption {
    /// `smtps://`: from the beginning.
    Tls,
    /// `smtp://`.
    StartTls(StartTls),
}

/// Whether a connection that begins without encryption goes on with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartTls {
    Required,
    /// If the server offers it.
    Opportunistic,
    Never,
}

const SMTPS_PORT: u16 = 465;
/// Of servers that take mails of users.
const SUBMISSION_PORT: u16 = 587;
const SMTP_PORT: u16 = 25;

impl SmtpUrl {
    /// Says what is wrong with a URL, and what to do.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = "expected smtp://[user:password@]host[:port] or smtps://[user:password@]host[:port]";
        let url = Url::parse(text).map_err(|error| format!("it is no URL ({error}); {expected}"))?;
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| format!("it names no host; {expected}"))?;
        let host = percent_decode_str(host).decode_utf8().ok().and_then(|host| Host::parse(&host).ok());
        let host = host.ok_or_else(|| format!("its host is no name and no address; {expected}"))?.to_string();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
            return Err(format!("it has a path; {expected}"));
        }
        let credentials = credentials(&url)?;
        let mut starttls = None;
        for (name, value) in url.query_pairs() {
            if starttls.is_some() {
                return Err("starttls is given more than once; name it once".into());
            }
            match (&*name, &*value) {
                ("starttls", "required") => starttls = Some(StartTls::Required),
                ("starttls", "opportunistic") => starttls = Some(StartTls::Opportunistic),
                ("starttls", "never") => starttls = Some(StartTls::Never),
                ("starttls", _) => return Err("starttls is required, opportunistic or never".into()),
                _ => return Err("its only parameter is starttls".into()),
            }
        }
        let (encryption, port) = match (url.scheme(), starttls) {
            ("smtps", None) => (SmtpEncryption::Tls, SMTPS_PORT),
            ("smtps", Some(_)) => {
                return Err(
                    "smtps:// is encrypted from the beginning; leave starttls out, or use smtp://".into()
                );
            }
            ("smtp", chosen) => {
                let is_local = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
                // A password is not sent where others can read it, unless somebody has asked for that. Somebody on the way
                // can leave out the offer of encryption.
                if credentials.is_some() && !is_local && chosen == Some(StartTls::Opportunistic) {
                    let why = "with a password it is starttls=required, or starttls=never in a network that you trust";
                    return Err(why.into());
                }
                let default = match credentials.is_some() && !is_local {
                    true => StartTls::Required,
                    false => StartTls::Opportunistic,
                };
                let port = if credentials.is_some() { SUBMISSION_PORT } else { SMTP_PORT };
                (SmtpEncryption::StartTls(chosen.unwrap_or(default)), port)
            }
            _ => return Err(format!("it is not for mail; {expected}")),
        };
        Ok(Self { host, port: url.port().unwrap_or(port), encryption, credentials })
    }
}

fn credentials(url: &Url) -> Result<Option<(String, String)>, String> {
    let decoded = |part: &str| {
        let text = percent_decode_str(part).decode_utf8();
        text.map(|text| text.into_owned())
            .map_err(|_| "user and password are UTF-8, percent-encoded".to_owned())
    };
    match (url.username(), url.password()) {
        ("", None) => Ok(None),
        ("", Some(_)) | (_, None) => {
            Err("it needs a user and a password, or neither: user:password@host".into())
        }
        (user, Some(password)) => Ok(Some((decoded(user)?, decoded(password)?))),
    }
}

/// Without the user and the password.
impl fmt::Display for SmtpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.encryption == SmtpEncryption::Tls { "smtps" } else { "smtp" };
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Debug for SmtpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> SmtpUrl {
        SmtpUrl::parse(text).unwrap()
    }

    #[test]
    fn a_url_says_where_and_how_mails_leave() {
        use SmtpEncryption::{StartTls as Plain, Tls};
        let all = |url: SmtpUrl| (url.host.clone(), url.port, url.encryption);
        let of = |host: &str, port, encryption| (host.to_owned(), port, encryption);
        assert_eq!(all(read("smtps://mail.example.com")), of("mail.example.com", 465, Tls));
        let offered = Plain(StartTls::Opportunistic);
        assert_eq!(all(read("smtp://mail.example.com")), of("mail.example.com", 25, offered));
        assert_eq!(all(read("smtp://a:b@127.0.0.1:1025")), of("127.0.0.1", 1025, offered));
        assert_eq!(all(read("smtp://a:b@[::1]")), of("::1", 587, offered));
        assert_eq!(all(read("smtp://a:b@127.1?starttls=opportunistic")), of("127.0.0.1", 587, offered));
        assert_eq!(all(read("smtp://MÄIL.example.com")), of("xn--mil-qla.example.com", 25, offered));
        let required = Plain(StartTls::Required);
        assert_eq!(all(read("smtp://a:b@mail.example.com")), of("mail.example.com", 587, required));
        assert_eq!(
            all(read("smtp://mail.example.com/?starttls=required")),
            of("mail.example.com", 25, required)
        );
        let never = read("smtp://a:b@mail.example.com?starttls=never");
        assert_eq!(never.encryption, Plain(StartTls::Never));
    }

    #[test]
    fn user_and_password_are_decoded_and_never_shown() {
        let url = read("smtps://me%40example.com:p%3Ass%2Fword@mail.example.com:4465");
        assert_eq!(url.credentials, Some(("me@example.com".into(), "p:ss/word".into())));
        assert_eq!((url.to_string(), format!("{url:?}")), {
            let shown = "smtps://mail.example.com:4465".to_owned();
            (shown.clone(), shown)
        });
    }

    #[test]
    fn a_wrong_url_is_refused_with_what_to_do() {
        for (bad, said) in [
            ("mail.example.com", "it is no URL"),
            ("http://mail.example.com", "it is not for mail"),
            ("smtp://", "it"),
            ("smtp://mail.example.com/inbox", "it has a path"),
            ("smtp://user@mail.example.com", "needs a user and a password"),
            ("smtp://mail.example.com?starttls=maybe", "starttls is required, opportunistic or never"),
            ("smtp://mail.example.com?tls=yes", "its only parameter is starttls"),
            ("smtps://mail.example.com?starttls=never", "leave starttls out"),
            ("smtp://mail.example.com?starttls=required&starttls=never", "more than once"),
            ("smtp://a:b@mail.example.com?starttls=opportunistic", "with a password it is starttls=required"),
            ("smtp://mail%0d%0aQUIT", "no name and no address"),
            ("smtp://mail%20example", "no name and no address"),
        ] {
            let why = SmtpUrl::parse(bad).unwrap_err();
            assert!(why.contains(said), "{bad}: {why}");
        }
    }
}
