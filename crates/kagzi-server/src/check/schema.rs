//! The form of an input: JSON Schema 2020-12, bounded, without references to elsewhere.

use jsonschema::{Draft, PatternOptions, Validator};
use kagzi_proto::{Reason, Refusal};
use serde_json::Value;
use tonic::Status;

use super::invalid;

/// Deepest schema.
const DEPTH_MAX: usize = 32;
/// Longest pattern of a text, in bytes.
const PATTERN_BYTES_MAX: usize = 512;
/// Most memory that a compiled pattern takes. Patterns are matched in linear time.
const PATTERN_MEMORY_MAX: usize = 256 * 1024;
/// Mistakes that are told at once.
const MISTAKES_MAX: usize = 10;

/// Whether this is a schema that the server checks answers with.
pub fn schema_fits(schema: &Value) -> Result<(), Status> {
    compile(schema).map(drop)
}

/// Whether data has the form that was asked for. The refusal names every place where it has not, as a JSON
/// pointer.
pub fn data_fits(schema: &Value, data: &Value) -> Result<(), Status> {
    let validator = compile(schema)?;
    let mistakes: Vec<(String, String)> = validator
        .iter_errors(data)
        .take(MISTAKES_MAX)
        .map(|mistake| (format!("data{}", mistake.instance_path()), mistake.to_string()))
        .collect();
    if mistakes.is_empty() {
        return Ok(());
    }
    let words: Vec<String> = mistakes.iter().map(|(at, rule)| format!("{at}: {rule}")).collect();
    let refusal = Refusal::new(Reason::FieldInvalid, words.join("; "));
    Err(mistakes.iter().fold(refusal, |refusal, (at, rule)| refusal.field(at, rule)).status())
}

fn compile(schema: &Value) -> Result<Validator, Status> {
    bounded(schema, 0)?;
    let patterns = PatternOptions::regex().size_limit(PATTERN_MEMORY_MAX).dfa_size_limit(PATTERN_MEMORY_MAX);
    let options = jsonschema::options().with_draft(Draft::Draft202012).with_pattern_options(patterns);
    options.build(schema).map_err(|error| invalid("ask.schema", "", format!("it is no JSON Schema: {error}")))
}

fn bounded(schema: &Value, depth: usize) -> Result<(), Status> {
    if depth > DEPTH_MAX {
        return Err(invalid("ask.schema", depth, format!("it must be at most {DEPTH_MAX} levels deep")));
    }
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let (true, Some(to)) = (name.ends_with("ref") || name.ends_with("Ref"), value.as_str())
                    && name.starts_with('$')
                    && !to.starts_with('#')
                {
                    let rule = "a schema refers to itself only; references to elsewhere are not followed";
                    return Err(invalid("ask.schema", to, rule));
                }
                let long = value.as_str().is_some_and(|pattern| pattern.len() > PATTERN_BYTES_MAX);
                if (name == "pattern" && long) || name.len() > PATTERN_BYTES_MAX {
                    let rule = format!("a pattern has at most {PATTERN_BYTES_MAX} bytes");
                    return Err(invalid("ask.schema", name, rule));
                }
                bounded(value, depth + 1)?;
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| bounded(item, depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(refused: Result<(), Status>) -> String {
        refused.unwrap_err().message().to_owned()
    }

    #[test]
    fn data_that_does_not_fit_is_refused_with_the_place_of_each_mistake() {
        let schema = json!({
            "type": "object",
            "properties": { "city": { "type": "string", "minLength": 1 }, "no": { "type": "integer" } },
            "required": ["city"],
            "additionalProperties": false,
        });

        data_fits(&schema, &json!({ "city": "Delhi", "no": 4 })).unwrap();
        let said = words(data_fits(&schema, &json!({ "city": "", "no": "four" })));
        assert!(said.contains("data/city: ") && said.contains("data/no: "), "{said}");
        assert!(words(data_fits(&schema, &json!({}))).contains("city"));
    }

    #[test]
    fn a_schema_that_asks_for_another_file_or_server_is_refused() {
        for elsewhere in ["http://127.0.0.1:1/x.json", "file:///etc/passwd", "other.json"] {
            let said = words(schema_fits(&json!({ "$ref": elsewhere })));
            assert!(said.contains("refers to itself only"), "{said}");
        }
        schema_fits(&json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "string" } } })).unwrap();
    }

    #[test]
    fn a_schema_that_would_cost_too_much_is_refused() {
        let deep = (0..40).fold(json!({}), |inner, _| json!({ "not": inner }));
        assert!(words(schema_fits(&deep)).contains("levels deep"));
        let long = json!({ "pattern": "a".repeat(600) });
        assert!(words(schema_fits(&long)).contains("at most 512 bytes"));
        // As a program it would have a hundred million states.
        let bomb = json!({ "type": "string", "pattern": "^(((a{100}){100}){100}){100}$" });
        assert!(schema_fits(&bomb).is_err());
        assert!(schema_fits(&json!({ "type": 7 })).is_err());
    }

    #[test]
    fn a_pattern_that_backtracks_elsewhere_answers_at_once() {
        let schema = json!({ "type": "string", "pattern": "^(a+)+$" });
        let began = std::time::Instant::now();

        assert!(data_fits(&schema, &json!(format!("{}b", "a".repeat(50_000)))).is_err());

        assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    }
}
