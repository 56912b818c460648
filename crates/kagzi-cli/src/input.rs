use crate::exit::Trouble;
use anyhow::Context;
use bytes::Bytes;
use std::io::Read;

/// Reads the value of `--input`: JSON itself, `@FILE`, or `-` for stdin. The bytes are sent as they were
/// written.
pub fn read(argument: &str) -> anyhow::Result<Bytes> {
    let (source, text) = match argument {
        "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("could not read the input from stdin")?;
            ("stdin", text)
        }
        _ => match argument.strip_prefix('@') {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|error| Trouble::usage(format!("could not read input file {path}: {error}")))?;
                (path, text)
            }
            None => ("--input", argument.to_owned()),
        },
    };
    check(source, &text)?;
    Ok(Bytes::from(text))
}

/// Points at the offending character, as a compiler would.
fn check(source: &str, text: &str) -> anyhow::Result<()> {
    let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) else { return Ok(()) };
    let (line, column) = (error.line(), error.column());
    let message = error.to_string();
    let cause = message.split(" at line ").next().unwrap_or(&message);
    let shown = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let pointer = format!("{}^", " ".repeat(column.saturating_sub(1)));
    Err(Trouble::usage(format!(
        "invalid JSON in {source} at line {line}, column {column}: {cause}\n  {shown}\n  {pointer}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_passed_on_unchanged() {
        assert_eq!(read(r#"{ "a" : 1.10 }"#).unwrap(), r#"{ "a" : 1.10 }"#);
    }

    #[test]
    fn a_file_is_read_by_its_name_after_an_at_sign() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("input.json");
        std::fs::write(&path, "[1, 2]").unwrap();

        let input = read(&format!("@{}", path.display())).unwrap();

        assert_eq!(input, "[1, 2]");
    }

    #[test]
    fn invalid_json_is_a_usage_error_that_points_at_the_place() {
        let error = read("{\n  \"a\": 1,\n  \"b\" 2\n}").unwrap_err();

        assert!(matches!(error.downcast_ref(), Some(Trouble::Usage(_))));
        insta::assert_snapshot!(error, @r#"
        invalid JSON in --input at line 3, column 7: expected `:`
            "b" 2
                ^
        "#);
    }

    #[test]
    fn empty_input_and_missing_files_are_usage_errors() {
        for argument in ["", "@/nowhere/input.json", "{} {}"] {
            let error = read(argument).unwrap_err();
            assert!(matches!(error.downcast_ref(), Some(Trouble::Usage(_))), "{argument}: {error}");
        }
    }
}
