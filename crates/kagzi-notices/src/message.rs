//! From facts to the message that somebody reads: the built-in texts, and a namespace's own.

mod defaults;
mod texts_file;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, LazyLock},
};

use serde::{Deserialize, Serialize};

use crate::{
    Occasion,
    facts::Values,
    occasion,
    template::{Form, Template, TemplateError},
};

pub use texts_file::{NamespaceTexts, TextsFile};

/// What one person reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// One line.
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// A namespace's own texts for one occasion; what it leaves out is built in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OwnTexts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
}

/// A mistake in a namespace's own texts, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextsError {
    #[error("{occasion}.{part}: {error}", occasion = .occasion.name())]
    Template { occasion: Occasion, part: &'static str, error: TemplateError },
    #[error("there is no message called '{name}'; there are {}", names())]
    UnknownOccasion { name: String },
}

fn names() -> String {
    Occasion::ALL.map(Occasion::name).join(", ")
}

/// The texts for every occasion, read and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts(HashMap<Occasion, Templates>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Templates {
    subject: Template,
    text: Template,
    html: Template,
}

static BUILT_IN: LazyLock<Arc<Texts>> = LazyLock::new(|| {
    let all = Occasion::ALL.into_iter().map(|occasion| {
        let texts = defaults::texts(occasion);
        let templates = Templates::read(occasion, &texts);
        (occasion, templates.expect("the built-in texts are good templates, as a test says"))
    });
    Arc::new(Texts(all.collect()))
});

impl Texts {
    /// Those that nobody has to write.
    pub fn built_in() -> Arc<Texts> {
        BUILT_IN.clone()
    }

    /// The built-in texts with a namespace's own in their place. Any mistake refuses them all: a namespace
    /// has the texts that it wrote or those that it had before, never half of each.
    pub fn with(own: &BTreeMap<String, OwnTexts>) -> Result<Texts, TextsError> {
        let mut texts = Texts::clone(&BUILT_IN);
        for (name, own) in own {
            let unknown = || TextsError::UnknownOccasion { name: crate::clean::line(name, 30) };
            let occasion = occasion::from_name(name).ok_or_else(unknown)?;
            let standard = defaults::texts(occasion);
            let merged = OwnTexts {
                subject: own.subject.clone().or(standard.subject),
                text: own.text.clone().or(standard.text),
                html: own.html.clone().or(standard.html),
            };
            texts.0.insert(occasion, Templates::read(occasion, &merged)?);
        }
        Ok(texts)
    }

    /// The message of an occasion. It never fails: whatever could go wrong was found when it was read.
    pub fn message(&self, occasion: Occasion, values: &Values) -> Message {
        let templates = self.0.get(&occasion).expect("every occasion has its texts");
        Message {
            subject: templates.subject.fill(values),
            text: templates.text.fill(values),
            html: templates.html.fill(values),
        }
    }
}

impl Templates {
    fn read(occasion: Occasion, texts: &OwnTexts) -> Result<Templates, TextsError> {
        let read = |part, form, source: &Option<String>| {
            Template::read(form, source.as_deref().unwrap_or_default())
                .map_err(|error| TextsError::Template { occasion, part, error })
        };
        Ok(Templates {
            subject: read("subject", Form::Line, &texts.subject)?,
            text: read("text", Form::Text, &texts.text)?,
            html: read("html", Form::Html, &texts.html)?,
        })
    }
}

#[cfg(test)]
mod tests;
