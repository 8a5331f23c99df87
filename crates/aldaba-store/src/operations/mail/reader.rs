//! The one form of a mail address by which it is counted, joined and looked up.

use url::Host;

/// Letters of ASCII in lower case, and the domain as IDNA has it. The address itself is kept and used as it was given.
pub(crate) fn reader_of(address: &str) -> String {
    let Some((name, domain)) = address.rsplit_once('@') else { return address.to_ascii_lowercase() };
    let domain = match Host::parse(domain) {
        Ok(host) => host.to_string(),
        Err(_) => domain.to_ascii_lowercase(),
    };
    format!("{}@{domain}", name.to_ascii_lowercase())
}

/// The mailbox behind an address, as most mail servers have it: small letters, and nothing of what follows a `+`. Only limits
/// against floods use it, because other servers tell such addresses apart.
pub(crate) fn mailbox_of(address: &str) -> String {
    let reader = reader_of(address).to_lowercase();
    match reader.rsplit_once('@').and_then(|(name, domain)| Some((name.split_once('+')?.0, domain))) {
        Some((name, domain)) if !name.is_empty() => format!("{name}@{domain}"),
        _ => reader,
    }
}

#[cfg(test)]
mod tests {
    use super::{mailbox_of, reader_of};

    #[test]
    fn letters_in_upper_case_and_the_form_of_a_domain_make_no_other_reader() {
        assert_eq!(reader_of("Owner@Example.COM"), "owner@example.com");
        assert_eq!(reader_of("o@BÜCHER.example"), reader_of("O@xn--bcher-kva.example"));
        assert_ne!(reader_of("a@example.com"), reader_of("b@example.com"));
        assert_eq!(reader_of(""), "", "the operator");
    }
    #[test]
    fn what_follows_a_plus_and_letters_in_upper_case_make_no_other_mailbox() {
        for variant in
            ["owner@example.com", "Owner+1@Example.com", "owner+a+b@example.com", "owner+@example.com"]
        {
            assert_eq!(mailbox_of(variant), "owner@example.com", "{variant}");
        }
        assert_eq!(mailbox_of("ÑANDÚ+1@example.com"), "ñandú@example.com");
        assert_eq!(mailbox_of("+1@example.com"), "+1@example.com");
        assert_ne!(reader_of("owner+1@example.com"), reader_of("owner@example.com"));
        assert_eq!(mailbox_of(""), "", "the operator");
    }
}
