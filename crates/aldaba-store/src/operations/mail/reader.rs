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

#[cfg(test)]
mod tests {
    use super::reader_of;

    #[test]
    fn letters_in_upper_case_and_the_form_of_a_domain_make_no_other_reader() {
        assert_eq!(reader_of("Owner@Example.COM"), "owner@example.com");
        assert_eq!(reader_of("o@BÜCHER.example"), reader_of("O@xn--bcher-kva.example"));
        assert_ne!(reader_of("a@example.com"), reader_of("b@example.com"));
        assert_eq!(reader_of(""), "", "the operator");
    }
}
