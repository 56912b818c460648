//! `docs/events.md` has the catalogue as it is declared.

use kagzi_model::EventKind;

/// The tables, a section each.
fn tables() -> String {
    let mut text = String::new();
    let mut section = "";
    for kind in EventKind::KINDS {
        if section != kind.section {
            section = kind.section;
            text += &format!(
                "\n## {section}\n\n| event | no. | when | fields | payload |\n|---|---|---|---|---|\n"
            );
        }
        let when: Vec<_> = kind.meaning.iter().map(|line| line.trim()).collect();
        let fields: Vec<_> = kind
            .fields
            .iter()
            .map(|field| match field.meaning.trim() {
                "" => format!("`{}`", field.name),
                meaning => format!("`{}`: {meaning}", field.name),
            })
            .collect();
        text += &format!(
            "| `{}` | {} | {} | {} | {} |\n",
            kind.name,
            kind.number,
            when.join(" "),
            fields.join("; "),
            kind.payload.unwrap_or_default()
        );
    }
    text
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the model does no I/O; its documentation is a file")]
fn the_documentation_lists_every_kind_as_it_is_declared() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/events.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (begin, end) = ("<!-- generated: events -->\n", "\n<!-- end of generated events -->");
    let (before, rest) = document.split_once(begin).expect("the page has its first mark");
    let (shown, after) = rest.split_once(end).expect("the page has its last mark");
    if std::env::var_os("KAGZI_WRITE_DOCS").is_some() {
        std::fs::write(path, format!("{before}{begin}{}{end}{after}", tables())).unwrap();
        return;
    }

    let hint = "write it anew with: KAGZI_WRITE_DOCS=1 cargo test -p kagzi-model documentation";
    assert_eq!(shown, tables(), "{hint}");
}
