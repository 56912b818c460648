//! From what a user wrote to a typed value, and back to what a user is shown.

use std::{fmt, net::SocketAddr, time::Duration};

use serde_json::Value;

use super::duration;
use crate::StoreUrl;

/// A value before its type is known.
#[derive(Debug, Clone, PartialEq)]
pub enum Raw {
    /// From a variable or a flag: everything is text there, whatever its type.
    Text(String),
    /// From a file, where the type was written down.
    String(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    List(Vec<Raw>),
    /// Something that no key takes, by its name.
    Other(&'static str),
}

impl Raw {
    fn written(&self) -> String {
        match self {
            Raw::Text(text) => format!("'{text}'"),
            Raw::String(text) => format!("the string \"{text}\""),
            Raw::Integer(number) => format!("the integer {number}"),
            Raw::Float(number) => format!("the number {number}"),
            Raw::Bool(fact) => format!("the boolean {fact}"),
            Raw::List(_) => "a list".into(),
            Raw::Other(name) => format!("a {name}"),
        }
    }
}

/// A type that can be configured.
pub trait Setting: Sized {
    /// What must be written: `a duration such as "30s"`.
    const EXPECTED: &'static str;

    /// Reads it; none when it is not of this type.
    fn read(raw: &Raw) -> Option<Self>;

    /// What people are shown, in the form in which it is written. Secrets are masked; null = not set.
    fn show(&self) -> Value;

    /// Reads it, or says what was expected. A secret never appears in the message.
    fn parse(raw: &Raw) -> Result<Self, String> {
        Self::read(raw).ok_or_else(|| format!("expected {}, got {}", Self::EXPECTED, raw.written()))
    }
}

macro_rules! integers {
    ($($type:ty: $expected:literal),+) => {$(
        impl Setting for $type {
            const EXPECTED: &'static str = $expected;

            fn read(raw: &Raw) -> Option<Self> {
                match raw {
                    // `1_048_576` is how TOML writes it, so variables may too.
                    Raw::Text(text) => text.trim().replace('_', "").parse().ok(),
                    Raw::Integer(number) => Self::try_from(*number).ok(),
                    Raw::String(_) | Raw::Float(_) | Raw::Bool(_) | Raw::List(_) | Raw::Other(_) => None,
                }
            }

            fn show(&self) -> Value {
                Value::from(*self)
            }
        }
    )+};
}

integers!(
    u32: "a whole number",
    u64: "a whole number",
    usize: "a whole number",
    i32: "a whole number, or -1"
);

impl Setting for f64 {
    const EXPECTED: &'static str = "a number";

    fn read(raw: &Raw) -> Option<Self> {
        match raw {
            Raw::Text(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
            Raw::Integer(number) => Some(*number as f64),
            Raw::Float(number) => Some(*number).filter(|number| number.is_finite()),
            Raw::String(_) | Raw::Bool(_) | Raw::List(_) | Raw::Other(_) => None,
        }
    }

    fn show(&self) -> Value {
        Value::from(*self)
    }
}

/// A part of a whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio(pub f64);

impl Setting for Ratio {
    const EXPECTED: &'static str = "a number from 0 to 1";

    fn read(raw: &Raw) -> Option<Self> {
        f64::read(raw).filter(|number| (0.0..=1.0).contains(number)).map(Ratio)
    }

    fn show(&self) -> Value {
        Value::from(self.0)
    }
}

impl Setting for bool {
    const EXPECTED: &'static str = "true or false";

    fn read(raw: &Raw) -> Option<Self> {
        match raw {
            Raw::Bool(fact) => Some(*fact),
            Raw::Text(text) => text.trim().parse().ok(),
            Raw::String(_) | Raw::Integer(_) | Raw::Float(_) | Raw::List(_) | Raw::Other(_) => None,
        }
    }

    fn show(&self) -> Value {
        Value::from(*self)
    }
}

/// The text of a string, wherever it was written.
pub fn text(raw: &Raw) -> Option<&str> {
    match raw {
        Raw::Text(text) | Raw::String(text) => Some(text),
        Raw::Integer(_) | Raw::Float(_) | Raw::Bool(_) | Raw::List(_) | Raw::Other(_) => None,
    }
}

impl Setting for String {
    const EXPECTED: &'static str = "a string";

    fn read(raw: &Raw) -> Option<Self> {
        text(raw).map(str::to_owned)
    }

    fn show(&self) -> Value {
        Value::from(self.as_str())
    }
}

/// A URL that may hold a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(pub String);

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.show())
    }
}

impl Setting for Endpoint {
    const EXPECTED: &'static str = "a URL";

    fn read(raw: &Raw) -> Option<Self> {
        text(raw).map(|url| Endpoint(url.to_owned()))
    }

    /// Whoever it names, and by which secret, becomes `***`.
    fn show(&self) -> Value {
        let Endpoint(url) = self;
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let authority = rest.split(['/', '?']).next().unwrap_or(rest);
        Value::from(match authority.rfind('@') {
            Some(at) => format!("{scheme}://***{}", &rest[at..]),
            None => url.clone(),
        })
    }
}

/// Text that nobody is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Setting for Secret {
    const EXPECTED: &'static str = "a string";

    fn read(raw: &Raw) -> Option<Self> {
        text(raw).map(|secret| Secret(secret.to_owned()))
    }

    fn show(&self) -> Value {
        Value::from("***")
    }

    fn parse(raw: &Raw) -> Result<Self, String> {
        // Even a number may have been meant as a password.
        Self::read(raw).ok_or_else(|| format!("expected {}", Self::EXPECTED))
    }
}

/// A URL whose path is a secret, as that of a chat room's webhook is.
#[derive(Clone, PartialEq, Eq)]
pub struct Hook(pub String);

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

impl Hook {
    fn masked(&self) -> String {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("", ""));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        match authority.rsplit('@').next() {
            Some(host) if !host.is_empty() => format!("{scheme}://{host}/***"),
            Some(_) | None => "***".into(),
        }
    }
}

impl Setting for Hook {
    const EXPECTED: &'static str = "a URL";

    fn read(raw: &Raw) -> Option<Self> {
        text(raw).map(|url| Hook(url.to_owned()))
    }

    fn show(&self) -> Value {
        Value::from(self.masked())
    }
}

impl Setting for Duration {
    const EXPECTED: &'static str = "a duration with a unit, such as \"500ms\", \"30s\", \"10m\" or \"90d\"";

    fn read(raw: &Raw) -> Option<Self> {
        duration::parse(text(raw)?)
    }

    fn show(&self) -> Value {
        Value::from(duration::show(*self))
    }
}

impl Setting for SocketAddr {
    const EXPECTED: &'static str = "an IP address and a port, such as \"127.0.0.1:50051\"";

    fn read(raw: &Raw) -> Option<Self> {
        text(raw)?.parse().ok()
    }

    fn show(&self) -> Value {
        Value::from(self.to_string())
    }
}

impl Setting for StoreUrl {
    const EXPECTED: &'static str = "\"sqlite:PATH\" or \"postgres://USER:PASSWORD@HOST/DATABASE\"";

    fn read(raw: &Raw) -> Option<Self> {
        text(raw)?.parse().ok()
    }

    fn show(&self) -> Value {
        Value::from(self.masked())
    }

    fn parse(raw: &Raw) -> Result<Self, String> {
        let Some(url) = text(raw) else { return Err(format!("expected {}", Self::EXPECTED)) };
        if let Some(missing) = StoreUrl::missing_in_this_build(url) {
            return Err(missing.into());
        }
        // The reader's own message is better, and it never repeats what follows a colon.
        url.parse().map_err(|_| match url.split_once(':') {
            Some((scheme, _)) => format!("expected {}, got a '{scheme}:' URL", Self::EXPECTED),
            // Not a URL at all, such as `host=db password=…`: what it says is not ours to repeat.
            None => format!("expected {}", Self::EXPECTED),
        })
    }
}

impl Setting for Vec<String> {
    const EXPECTED: &'static str = "a list of strings (in a variable: separated by commas)";

    fn read(raw: &Raw) -> Option<Self> {
        match raw {
            Raw::List(items) => items.iter().map(String::read).collect(),
            Raw::Text(text) => Some(
                text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect(),
            ),
            Raw::String(_) | Raw::Integer(_) | Raw::Float(_) | Raw::Bool(_) | Raw::Other(_) => None,
        }
    }

    fn show(&self) -> Value {
        Value::from(self.clone())
    }
}

/// Not set, unless somebody sets it.
impl<T: Setting> Setting for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn read(raw: &Raw) -> Option<Self> {
        T::read(raw).map(Some)
    }

    fn show(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::show)
    }

    fn parse(raw: &Raw) -> Result<Self, String> {
        T::parse(raw).map(Some)
    }
}
