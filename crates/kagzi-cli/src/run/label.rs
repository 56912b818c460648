//! Labels on the command line: `--label tenant=acme`.

use std::collections::BTreeMap;

/// Reads `name=value`. The value may be empty and may contain `=`, the name neither.
pub fn parse(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("write it as name=value, e.g. tenant=acme".to_owned()),
    }
}

/// All labels in one line.
pub fn text(labels: &BTreeMap<String, String>) -> String {
    let labels: Vec<_> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    labels.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_split_at_its_first_equals_sign() {
        assert_eq!(parse("query=a=b"), Ok(("query".into(), "a=b".into())));
        assert_eq!(parse("done="), Ok(("done".into(), String::new())));
        assert!(parse("tenant").unwrap_err().contains("name=value"));
        assert!(parse("=acme").is_err());
    }
}
