//! Templates: text with named fields, and nothing else.
//!
//! `{{title}}` stands for the field `title`. A line that names fields of which none says anything is left
//! out, so that a message has no empty rows. There are no conditions, loops or functions: whoever may change
//! a template can change a text, never run code. All mistakes are found when a template is read, with their
//! line, and none when it is used.

mod markup;

use crate::{
    clean,
    facts::{Field, Values},
};

/// Bytes of one template.
pub const TEMPLATE_BYTES_MAX: usize = 16 * 1024;
/// Fields that one template may name, so that a message stays a message.
pub const TEMPLATE_FIELDS_MAX: usize = 100;

/// What a template makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One line, for a subject.
    Line,
    /// Plain text.
    Text,
    /// A page: fields are escaped, and within a tag only a link may stand.
    Html,
}

/// A template that was read, and can be used without ever failing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    form: Form,
    lines: Vec<Vec<Piece>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Field(Field),
}

/// A mistake in a template, with its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {mistake}")]
pub struct TemplateError {
    /// Counted from 1.
    pub line: usize,
    pub mistake: Mistake,
}

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    #[error("there is no field {{{{{name}}}}}; there are {}", known_fields())]
    UnknownField { name: String },
    #[error("{{{{{begun} is not closed on its line; a field is written {{{{title}}}}")]
    NotClosed { begun: String },
    #[error("a subject is one line, and it says something")]
    NotOneLine,
    #[error("a template has at most {TEMPLATE_BYTES_MAX} bytes, this one has {bytes}")]
    TooLong { bytes: usize },
    #[error("a template names at most {TEMPLATE_FIELDS_MAX} fields")]
    TooManyFields,
    #[error("within a tag only {{{{link}}}} may stand, and only in quotes, but {{{{{name}}}}} does")]
    FieldInTag { name: &'static str },
    #[error("{what} has no place in a message")]
    Active { what: &'static str },
}

fn known_fields() -> String {
    let names: Vec<_> = Field::ALL.iter().map(|field| field.name()).collect();
    names.join(", ")
}

impl Template {
    /// Reads a template, or says what is wrong with it and in which line.
    pub fn read(form: Form, source: &str) -> Result<Template, TemplateError> {
        let at = |line: usize| move |mistake: Mistake| TemplateError { line, mistake };
        if source.len() > TEMPLATE_BYTES_MAX {
            return Err(at(1)(Mistake::TooLong { bytes: source.len() }));
        }
        if form == Form::Line && (source.trim().is_empty() || source.trim_end().lines().count() > 1) {
            return Err(at(source.lines().count().clamp(1, 2))(Mistake::NotOneLine));
        }
        let mut lines = Vec::new();
        let mut fields = 0;
        for (n, line) in source.trim_end().lines().enumerate() {
            let pieces = pieces(line).map_err(at(n + 1))?;
            fields += pieces.iter().filter(|piece| matches!(piece, Piece::Field(_))).count();
            if fields > TEMPLATE_FIELDS_MAX {
                return Err(at(n + 1)(Mistake::TooManyFields));
            }
            lines.push(pieces);
        }
        match form {
            Form::Html => markup::check(&lines)?,
            Form::Line | Form::Text => {}
        }
        Ok(Template { form, lines })
    }

    /// The text, with every field in its place.
    pub fn fill(&self, values: &Values) -> String {
        let mut shown: Vec<String> = Vec::with_capacity(self.lines.len());
        let mut left_out = false;
        for line in &self.lines {
            if says_nothing(line, values) {
                left_out = true;
                continue;
            }
            // What stood between two empty lines is gone: one of them is enough.
            if left_out && line.is_empty() && shown.last().is_some_and(String::is_empty) {
                continue;
            }
            left_out = false;
            shown.push(line.iter().map(|piece| self.shown(piece, values)).collect());
        }
        let text = shown.join("\n");
        match self.form {
            Form::Line => clean::line(&text, SUBJECT_CHARS_MAX),
            Form::Text | Form::Html => text,
        }
    }

    fn shown(&self, piece: &Piece, values: &Values) -> String {
        match (piece, self.form) {
            (Piece::Text(text), _) => text.clone(),
            (Piece::Field(field), Form::Line | Form::Text) => values.get(*field).to_owned(),
            (Piece::Field(field), Form::Html) => clean::html(values.get(*field)),
        }
    }
}

/// Characters of a subject: what a list of messages shows.
const SUBJECT_CHARS_MAX: usize = 150;

/// Whether a line names fields, and none of them says anything.
fn says_nothing(line: &[Piece], values: &Values) -> bool {
    let mut fields = line.iter().filter_map(|piece| match piece {
        Piece::Field(field) => Some(*field),
        Piece::Text(_) => None,
    });
    let named = line.iter().any(|piece| matches!(piece, Piece::Field(_)));
    named && fields.all(|field| values.get(field).is_empty())
}

fn pieces(line: &str) -> Result<Vec<Piece>, Mistake> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while let Some((before, begun)) = rest.split_once("{{") {
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        let Some((name, after)) = begun.split_once("}}") else {
            return Err(Mistake::NotClosed { begun: clean::line(begun, 30) });
        };
        let name = name.trim();
        let field = Field::from_name(name);
        pieces
            .push(Piece::Field(field.ok_or_else(|| Mistake::UnknownField { name: clean::line(name, 30) })?));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests;
