//! `event.proto` is the catalogue of events (`kagzi-model/src/event.rs`) in another form: what an event says
//! has the same field numbers in the database and in the contract.
//! `KAGZI_WRITE_PROTO=1 cargo test -p kagzi-proto` writes it.

use std::{fmt::Write, fs, path::Path};

use kagzi_model::{EventKind, Field, Proto};

#[test]
fn the_details_of_events_are_those_of_the_catalogue() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto/kagzi/v1/event.proto");
    let fresh = file();
    if std::env::var_os("KAGZI_WRITE_PROTO").is_some() {
        fs::write(&path, &fresh).unwrap();
    }

    let committed = fs::read_to_string(&path).unwrap_or_default();

    assert!(
        committed == fresh,
        "event.proto is old: run KAGZI_WRITE_PROTO=1 cargo test -p kagzi-proto twice"
    );
}

fn file() -> String {
    let mut out = String::from(HEAD);
    for kind in EventKind::KINDS {
        let name = camel(kind.name);
        writeln!(out, "    {name}Event {} = {};", kind.name, kind.number).unwrap();
    }
    out.push_str("  }\n}\n");
    out.push_str(KINDS);
    for kind in EventKind::KINDS {
        writeln!(out, "  EVENT_KIND_{} = {};", kind.name.to_uppercase(), kind.number).unwrap();
    }
    out.push_str("}\n");
    for kind in EventKind::KINDS {
        out.push('\n');
        comment(&mut out, "", &kind.meaning.join(" "));
        message(&mut out, "", &format!("{}Event", camel(kind.name)), kind.fields);
    }
    out
}

fn message(out: &mut String, indent: &str, name: &str, fields: &[Field]) {
    if fields.is_empty() {
        writeln!(out, "{indent}message {name} {{}}").unwrap();
        return;
    }
    writeln!(out, "{indent}message {name} {{").unwrap();
    let inner = format!("{indent}  ");
    for field in fields {
        if let Some(fields) = fields_of(&field.proto) {
            message(out, &inner, &camel(field.name), fields);
        }
    }
    for field in fields {
        comment(out, &inner, field.meaning);
        writeln!(out, "{inner}{} {} = {};", type_name(field), field.name, field.number).unwrap();
    }
    writeln!(out, "{indent}}}").unwrap();
}

/// Whole words, in lines of at most 110 columns.
fn comment(out: &mut String, indent: &str, text: &str) {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && indent.len() + line.len() + 4 + word.len() > 110 {
            writeln!(out, "{indent}//{line}").unwrap();
            line.clear();
        }
        line.push(' ');
        line.push_str(word);
    }
    if !line.is_empty() {
        writeln!(out, "{indent}//{line}").unwrap();
    }
}

fn fields_of(proto: &Proto) -> Option<&'static [Field]> {
    match proto {
        Proto::Message(fields) => Some(fields),
        Proto::Repeated(inner) => fields_of(inner),
        _ => None,
    }
}

fn type_name(field: &Field) -> String {
    fn of(proto: &Proto, name: &str) -> String {
        match proto {
            Proto::Bool => "bool".to_owned(),
            Proto::Int32 => "int32".to_owned(),
            Proto::Int64 => "int64".to_owned(),
            Proto::Uint32 => "uint32".to_owned(),
            Proto::Uint64 => "uint64".to_owned(),
            Proto::Double => "double".to_owned(),
            Proto::String => "string".to_owned(),
            Proto::Bytes => "bytes".to_owned(),
            Proto::Repeated(inner) => format!("repeated {}", of(inner, name)),
            Proto::Message(_) => camel(name),
        }
    }
    of(&field.proto, field.name)
}

fn camel(name: &str) -> String {
    name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

const HEAD: &str = "// Written from crates/kagzi-model/src/event.rs by KAGZI_WRITE_PROTO=1 cargo test -p \
                    kagzi-proto.
syntax = \"proto3\";

package kagzi.v1;

// What an event says beside its step and its payload: one field per kind. Ids of runs and workers are the
// 16 bytes of a UUID, times are microseconds since 1970. A kind that is not known here is a newer server's.
message EventDetail {
  oneof kind {
";

const KINDS: &str = "
// What happened. The numbers are those of the fields above.
enum EventKind {
  EVENT_KIND_UNSPECIFIED = 0;
";
