/// The headers of a request, asked for by name in lower case.
///
/// A closure `|name: &str| …` is one (or a reference to it, if it owns what it tells), and so is a slice of names and
/// values. With the feature `http`, so is a reference to the `HeaderMap` of the `http` crate. What is given out
/// lives as long as `'h`.
pub trait Headers<'h>: Copy {
    /// The header's value, where it came once and is text.
    fn get(&self, name: &str) -> Option<&'h str>;

    /// The same, and why there is none. Only what can tell a repeated header from an absent one needs to say more
    /// than [`Headers::get`].
    fn find(&self, name: &str) -> Found<'h> {
        self.get(name).map_or(Found::Absent, Found::Text)
    }
}

/// What came of a look for a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'h> {
    /// The request does not have it.
    Absent,
    /// Its value, in visible ASCII.
    Text(&'h str),
    /// It came more than once. Which one is meant would be a matter of opinion, and of two programs in a row each
    /// may have its own.
    Repeated,
    /// It holds bytes that are no visible ASCII.
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

/// Names in any case.
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
    /// One value, if there is no second.
    fn only(first: Option<Self>, second: Option<Self>) -> Self {
        if second.is_some() { Self::Repeated } else { first.unwrap_or(Self::Absent) }
    }

    fn text(self) -> Option<&'h str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Absent | Self::Repeated | Self::Unreadable => None,
        }
    }

    /// Spaces around a value are no part of it (HTTP says so), and an empty one is none.
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
