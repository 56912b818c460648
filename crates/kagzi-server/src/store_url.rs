//! Where the data lives, as users write it.

use std::{fmt, path::PathBuf, str::FromStr};

/// A store, named by a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// `sqlite:PATH`
    Sqlite(PathBuf),
    /// `turso:PATH` (beta)
    Turso(PathBuf),
    /// `postgres://USER:PASSWORD@HOST/DATABASE`
    Postgres(String),
    /// `memory:` — gone when the process ends; for tests.
    Memory,
}

impl FromStr for StoreUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "memory:" {
            return Ok(StoreUrl::Memory);
        }
        if let Some(missing) = StoreUrl::missing_in_this_build(text) {
            return Err(missing.into());
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(StoreUrl::Postgres(text.to_owned()));
        }
        match text.strip_prefix("turso://").or_else(|| text.strip_prefix("turso:")) {
            Some("") => return Err(format!("'{text}' names no file; write turso:PATH")),
            Some(path) => return Ok(StoreUrl::Turso(PathBuf::from(path))),
            None => {}
        }
        let path = text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:"));
        match path {
            Some("") => Err(format!("'{text}' names no file; write sqlite:PATH")),
            Some(path) => Ok(StoreUrl::Sqlite(PathBuf::from(path))),
            None => Err(format!("'{text}' is not a store; write sqlite:PATH or postgres://HOST/DATABASE")),
        }
    }
}

impl StoreUrl {
    /// What to do when the URL names a store that this program was built without.
    pub fn missing_in_this_build(text: &str) -> Option<&'static str> {
        match text.split(':').next() {
            Some("postgres" | "postgresql") if cfg!(not(feature = "postgres")) => {
                Some("this build has no PostgreSQL; build it with the cargo feature `postgres`")
            }
            Some("turso") if cfg!(not(feature = "turso")) => Some(
                "this build has no Turso; build it with the cargo feature `turso`, or keep the data in a \
                 file of \
                 SQLite: sqlite:PATH",
            ),
            Some(_) | None => None,
        }
    }

    /// For showing a configuration: a password becomes `***`, so that one sees that there is one.
    pub fn masked(&self) -> String {
        let shown = self.to_string();
        match self {
            StoreUrl::Postgres(url) if has_password(url) => shown.replacen('@', ":***@", 1),
            StoreUrl::Postgres(_) | StoreUrl::Sqlite(_) | StoreUrl::Turso(_) | StoreUrl::Memory => shown,
        }
    }

    /// The whole URL, password and all: for handing it on, never for showing it.
    pub fn to_url(&self) -> String {
        match self {
            StoreUrl::Postgres(url) => url.clone(),
            StoreUrl::Sqlite(_) | StoreUrl::Turso(_) | StoreUrl::Memory => self.to_string(),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            StoreUrl::Turso(path) => write!(f, "turso:{}", path.display()),
            // Logs and messages never show the password.
            StoreUrl::Postgres(url) => f.write_str(&without_password(url)),
            StoreUrl::Memory => f.write_str("memory:"),
        }
    }
}

fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.rsplit_once('@').is_some_and(|(login, _)| login.contains(':'))
}

fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "postgres://".into() };
    let (host, user) = match rest.rsplit_once('@') {
        Some((login, host)) => (host, login.split(':').next().map(|user| format!("{user}@"))),
        None => (rest, None),
    };
    let host = host.split('?').next().unwrap_or(host);
    format!("{scheme}://{}{host}", user.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_urls_name_a_file() {
        assert_eq!("sqlite:a/b.db".parse(), Ok(StoreUrl::Sqlite("a/b.db".into())));
        assert_eq!("sqlite:///tmp/x.db".parse(), Ok(StoreUrl::Sqlite("/tmp/x.db".into())));
    }

    #[cfg(feature = "turso")]
    #[test]
    fn turso_urls_name_a_file_and_are_written_as_they_are_read() {
        assert_eq!("turso:a/b.db".parse(), Ok(StoreUrl::Turso("a/b.db".into())));
        assert_eq!("turso:///tmp/x.db".parse(), Ok(StoreUrl::Turso("/tmp/x.db".into())));
        assert_eq!(StoreUrl::Turso("a/b.db".into()).to_url(), "turso:a/b.db");
        assert!("turso:".parse::<StoreUrl>().unwrap_err().contains("turso:PATH"));
    }

    #[cfg(not(feature = "turso"))]
    #[test]
    fn a_build_without_turso_names_the_feature_and_the_alternative() {
        let refused = "turso:a.db".parse::<StoreUrl>().unwrap_err();

        assert!(refused.contains("cargo feature `turso`") && refused.contains("sqlite:PATH"), "{refused}");
    }

    #[test]
    fn a_password_is_never_shown() {
        assert_eq!(without_password("postgres://me:secret@db:5432/kagzi?x=y"), "postgres://me@db:5432/kagzi");
        assert_eq!(without_password("postgres://db/kagzi"), "postgres://db/kagzi");
        let masked = StoreUrl::Postgres("postgres://me:se@cret@db/kagzi".into()).masked();
        assert_eq!(masked, "postgres://me:***@db/kagzi");
    }

    #[test]
    fn anything_else_is_refused_with_the_right_form() {
        for text in ["", "sqlite:", "mysql://x", "a.db"] {
            assert!(text.parse::<StoreUrl>().unwrap_err().contains("sqlite:PATH"));
        }
    }
}
