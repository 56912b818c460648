//! The table of a template's fields in docs/notices.md is written from their declaration.

use std::path::Path;

use kagzi_notices::Field;

const BEGIN: &str = "<!-- generated: fields -->\n";
const END: &str = "<!-- end of generated fields -->";

#[test]
fn the_documentation_has_every_field() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/notices.md");
    let page = std::fs::read_to_string(&path).expect("docs/notices.md is there");
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the fields");
    let (_, after) = rest.split_once(END).expect("the place has an end");
    let rows: String =
        Field::ALL.iter().map(|field| format!("| `{}` | {} |\n", field.name(), field.about())).collect();
    let fresh = format!("{before}{BEGIN}| field | says |\n|---|---|\n{rows}{END}{after}");
    if std::env::var_os("KAGZI_WRITE_DOCS").is_some() {
        std::fs::write(&path, &fresh).expect("docs/notices.md can be written");
        return;
    }

    let hint = "write it anew with: KAGZI_WRITE_DOCS=1 cargo test -p kagzi-notices --test documentation";
    assert!(page == fresh, "docs/notices.md is old: {hint}");
}
