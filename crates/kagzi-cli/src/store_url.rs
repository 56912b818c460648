use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a server keeps its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    Sqlite(PathBuf),
}

impl FromStr for StoreUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once(':').ok_or("expected sqlite:PATH")?;
        match scheme {
            "sqlite" if rest.is_empty() => Err("expected a file name after sqlite:".into()),
            "sqlite" => Ok(StoreUrl::Sqlite(rest.into())),
            "turso" | "postgres" | "postgresql" => {
                Err(format!("{scheme} is not available yet; use sqlite:PATH"))
            }
            _ => Err(format!("unknown store `{scheme}`; expected sqlite:PATH")),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sqlite_store_is_named_by_its_file() {
        assert_eq!("sqlite:data/kagzi.db".parse(), Ok(StoreUrl::Sqlite("data/kagzi.db".into())));
    }

    #[test]
    fn other_stores_are_refused_with_what_to_use_instead() {
        for text in ["", "kagzi.db", "sqlite:", "postgres://localhost/kagzi", "mysql:x"] {
            let refusal = text.parse::<StoreUrl>().unwrap_err();
            assert!(refusal.contains("sqlite:"), "{text}: {refusal}");
        }
    }
}
