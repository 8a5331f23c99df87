/// The headers of a request, by name in lower case.
///
/// Implemented by closures `|name: &str| …` (or a reference to one that owns its values) and by slices of names and
/// values. With the feature `http`, also by a reference to the `HeaderMap` of the `http` crate. Returned values live as
/// long as `'h`.
pub trait Headers<'h>: Copy {
    /// The value of a header that is present once and is text.
    fn get(&self, name: &str) -> Option<&'h str>;

    /// The same, with the reason if there is none. Implement it if repeated headers can be distinguished from absent
    /// ones.
    fn find(&self, name: &str) -> Found<'h> {
        self.get(name).map_or(Found::Absent, Found::Text)
    }
}

/// The result of looking up a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'h> {
    /// The request does not have it.
    Absent,
    /// Its value, in visible ASCII.
    Text(&'h str),
    /// It is present more than once. Two programs in a chain could choose different ones, so none is used.
    Repeated,
    /// It contains other bytes than visible ASCII.
    Unreadable,
}

impl<'h, F> Headers<'h> for F
where
    F: Fn(&str) -> Option<&'h str> + Copy,
{
    fn get(&self, name: &str) -> Option<&'h str> {
        self(name)
    }
}

/// Names are case-insensitive.
impl<'h, N: AsRef<str>, V: AsRef<str>> Headers<'h> for &'h [(N, V)] {
    fn get(&self, name: &str) -> Option<&'h str> {
        self.find(name).text()
    }

    fn find(&self, name: &str) -> Found<'h> {
        let named = self.iter().filter(|(other, _)| other.as_ref().eq_ignore_ascii_case(name));
        let mut values = named.map(|(_, value)| Found::Text(value.as_ref()));
        Found::only(values.next(), values.next())
    }
}

#[cfg(feature = "http")]
impl<'h> Headers<'h> for &'h http::HeaderMap {
    fn get(&self, name: &str) -> Option<&'h str> {
        self.find(name).text()
    }

    fn find(&self, name: &str) -> Found<'h> {
        let values = self.get_all(name).iter();
        let mut values = values.map(|value| value.to_str().map_or(Found::Unreadable, Found::Text));
        Found::only(values.next(), values.next())
    }
}

impl<'h> Found<'h> {
    /// The value, if there is exactly one.
    fn only(first: Option<Self>, second: Option<Self>) -> Self {
        if second.is_some() { Self::Repeated } else { first.unwrap_or(Self::Absent) }
    }

    fn text(self) -> Option<&'h str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Absent | Self::Repeated | Self::Unreadable => None,
        }
    }

    /// Trims spaces (as HTTP defines), and treats an empty value as absent.
    pub(crate) fn trimmed(self) -> Self {
        match self {
            Self::Text(text) => match text.trim_matches([' ', '\t']) {
                "" => Self::Absent,
                text => Self::Text(text),
            },
            other => other,
        }
    }
}
