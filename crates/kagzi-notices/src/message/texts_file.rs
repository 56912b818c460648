//! A file in which an operator gives namespaces texts of their own.
//!
//! ```json
//! { "shop": { "payloads": true, "messages": { "asked": { "subject": "[shop] {{title}}" } } } }
//! ```

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde::Deserialize;

use super::{OwnTexts, Texts};

/// What one namespace says in its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceTexts {
    pub texts: Arc<Texts>,
    /// Whether its messages may hold payloads.
    pub payloads_allowed: bool,
}

impl Default for NamespaceTexts {
    fn default() -> Self {
        NamespaceTexts { texts: Texts::built_in(), payloads_allowed: false }
    }
}

/// The texts of every namespace that has its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextsFile(HashMap<String, NamespaceTexts>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    payloads: bool,
    #[serde(default)]
    messages: BTreeMap<String, OwnTexts>,
}

impl TextsFile {
    /// Reads the file, or says what is wrong with it and where. Nothing of a file with a mistake is used.
    pub fn read(json: &str) -> Result<TextsFile, String> {
        let written: BTreeMap<String, Written> =
            serde_json::from_str(json).map_err(|error| format!("it cannot be read: {error}"))?;
        let read = written.into_iter().map(|(namespace, Written { payloads, messages })| {
            let texts = Texts::with(&messages)
                .map_err(|error| format!("namespace '{}': {error}", crate::clean::line(&namespace, 60)))?;
            Ok((namespace, NamespaceTexts { texts: Arc::new(texts), payloads_allowed: payloads }))
        });
        read.collect::<Result<_, String>>().map(TextsFile)
    }

    /// What a namespace says; the built-in texts, without payloads, where it has none of its own.
    pub fn of(&self, namespace: &str) -> NamespaceTexts {
        self.0.get(namespace).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_what_the_file_says_and_others_what_is_built_in() {
        let json = r#"{ "shop": { "payloads": true, "messages": { "asked": { "subject": "{{title}}!" } } },
                        "lab": {} }"#;

        let file = TextsFile::read(json).unwrap();

        assert!(file.of("shop").payloads_allowed);
        assert_ne!(file.of("shop").texts, Texts::built_in());
        assert_eq!(file.of("lab"), NamespaceTexts::default());
        assert_eq!(file.of("elsewhere"), NamespaceTexts::default());
        assert!(!file.of("elsewhere").payloads_allowed);
    }

    #[test]
    fn a_mistake_is_told_with_namespace_message_part_line_and_field() {
        let wrong = |json: &str| TextsFile::read(json).expect_err("it has a mistake");

        let field = wrong(r#"{ "shop": { "messages": { "asked": { "text": "a\n{{titel}}" } } } }"#);
        let message = wrong(r#"{ "shop": { "messages": { "askd": {} } } }"#);
        let key = wrong(r#"{ "shop": { "mesages": {} } }"#);
        let json = wrong("{\n\"shop\": ");

        assert!(
            field.starts_with("namespace 'shop': asked.text: line 2: there is no field {{titel}}"),
            "{field}"
        );
        assert!(message.starts_with("namespace 'shop': there is no message called 'askd'"), "{message}");
        assert!(key.contains("unknown field `mesages`"), "{key}");
        assert!(json.contains("line 2"), "{json}");
    }
}
