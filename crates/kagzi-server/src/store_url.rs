//! Where the data lives, as users write it.

use std::{fmt, path::PathBuf, str::FromStr};

/// A store, named by a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// `sqlite:PATH`
    Sqlite(PathBuf),
    /// `memory:` — gone when the process ends; for tests.
    Memory,
}

impl FromStr for StoreUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "memory:" {
            return Ok(StoreUrl::Memory);
        }
        let path = text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:"));
        match path {
            Some("") => Err(format!("'{text}' names no file; write sqlite:PATH")),
            Some(path) => Ok(StoreUrl::Sqlite(PathBuf::from(path))),
            None => Err(format!("'{text}' is not a store; write sqlite:PATH")),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            StoreUrl::Memory => f.write_str("memory:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_urls_name_a_file() {
        assert_eq!("sqlite:a/b.db".parse(), Ok(StoreUrl::Sqlite("a/b.db".into())));
        assert_eq!("sqlite:///tmp/x.db".parse(), Ok(StoreUrl::Sqlite("/tmp/x.db".into())));
    }

    #[test]
    fn anything_else_is_refused_with_the_right_form() {
        for text in ["", "sqlite:", "mysql://x", "a.db"] {
            assert!(text.parse::<StoreUrl>().unwrap_err().contains("sqlite:PATH"));
        }
    }
}
