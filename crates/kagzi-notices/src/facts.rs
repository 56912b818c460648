//! What a message may tell, and how much of it.

use jiff::tz::TimeZone;
use kagzi_model::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Occasion, Severity, clean};

/// How bad an incident is, in one word.
pub fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Low => "low",
        Severity::High => "high",
        Severity::Critical => "critical",
    }
}

/// Everything that is known about a question when somebody is told of it. Empty text says "not known".
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    pub namespace: String,
    /// The question's id.
    pub question: String,
    /// `approval`, `input`, …
    pub kind: String,
    pub title: String,
    pub workflow_type: String,
    pub run: String,
    pub step: String,
    pub severity: Option<Severity>,
    pub due_at: Option<Timestamp>,
    /// Who answered, or who escalated.
    pub by: String,
    /// Why it is no longer needed, or why it was cancelled.
    pub reason: String,
    /// What the asker wrote below the title. A payload: told only where the namespace allows it.
    pub message: String,
    /// What the asker added for whoever decides. A payload like the message.
    pub details: String,
}

/// For whom and by what rules the facts are told.
#[derive(Debug, Clone, PartialEq)]
pub struct Audience<'a> {
    pub recipient: &'a str,
    pub time_zone: &'a TimeZone,
    /// Whether messages of this namespace may hold payloads.
    pub payloads_allowed: bool,
    /// Where people open a question, such as `https://kagzi.example.org`.
    pub console_url: Option<&'a str>,
}

/// Declares the fields that a template may name, each with what it says.
macro_rules! fields {
    ($($(#[doc = $about:literal])+ $variant:ident = $name:literal),+ $(,)?) => {
        /// A field of a template.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Field {
            $($(#[doc = $about])+ $variant,)+
        }

        impl Field {
            /// Every field, in the order of the documentation.
            pub const ALL: &'static [Field] = &[$(Field::$variant),+];

            /// How a template names it.
            pub fn name(self) -> &'static str {
                match self { $(Field::$variant => $name,)+ }
            }

            /// What it says, for the documentation.
            pub fn about(self) -> String {
                let lines: &[&str] = match self { $(Field::$variant => &[$($about),+],)+ };
                lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
            }
        }
    };
}

fields! {
    /// Why this message is sent: asked, reminder, escalated, no_longer_needed, incident or action_cancelled.
    Occasion = "occasion",
    /// The name of the contact who gets it.
    Recipient = "recipient",
    /// The namespace of the question.
    Namespace = "namespace",
    /// The question's id.
    Question = "question",
    /// Its title.
    Title = "title",
    /// decision, input, approval, browser_takeover or error_resolution.
    Type = "type",
    /// low, high or critical; empty unless it is an incident.
    Severity = "severity",
    /// When it expires, in the time zone of the recipient.
    Due = "due",
    /// The type of the workflow that asks.
    WorkflowType = "workflow_type",
    /// The id of the run that asks.
    Run = "run",
    /// The step that waits.
    Step = "step",
    /// Who answered, or who escalated.
    By = "by",
    /// Why it is no longer needed, or why it was cancelled.
    Reason = "reason",
    /// The address of the page that shows the question. Opening it answers nothing.
    Link = "link",
    /// The command that shows the question in a terminal.
    Command = "command",
    /// What the asker wrote below the title. Empty unless the namespace allows payloads in messages.
    Message = "message",
    /// What the asker added for whoever decides. Empty unless the namespace allows payloads in messages.
    Details = "details",
}

/// Characters of a field that is one line.
const LINE_CHARS_MAX: usize = 200;
/// Characters of a field that may have several lines.
const BLOCK_CHARS_MAX: usize = 4_000;

impl Field {
    /// The field of this name.
    pub fn from_name(name: &str) -> Option<Field> {
        Field::ALL.iter().copied().find(|field| field.name() == name)
    }
}

/// The values of all fields in one message, cleaned and cut to their size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values(Vec<String>);

impl Values {
    /// What each field says to this audience.
    pub fn of(occasion: Occasion, facts: &Facts, audience: &Audience<'_>) -> Values {
        let line = |text: &str| clean::line(text, LINE_CHARS_MAX);
        let payload = |text: &str| match audience.payloads_allowed {
            true => clean::block(text, BLOCK_CHARS_MAX),
            false => String::new(),
        };
        let value = |field: &Field| match field {
            Field::Occasion => occasion.name().to_owned(),
            Field::Recipient => line(audience.recipient),
            Field::Namespace => line(&facts.namespace),
            Field::Question => line(&facts.question),
            Field::Title => line(&facts.title),
            Field::Type => line(&facts.kind),
            Field::Severity => facts.severity.map(severity_name).unwrap_or_default().to_owned(),
            Field::Due => facts.due_at.map_or_else(String::new, |at| moment(at, audience.time_zone)),
            Field::WorkflowType => line(&facts.workflow_type),
            Field::Run => line(&facts.run),
            Field::Step => line(&facts.step),
            Field::By => line(&facts.by),
            Field::Reason => line(&facts.reason),
            Field::Link => audience.console_url.map_or_else(String::new, |console| link(console, facts)),
            Field::Command => command(facts),
            Field::Message => payload(&facts.message),
            Field::Details => payload(&facts.details),
        };
        Values(Field::ALL.iter().map(value).collect())
    }

    /// What a field says.
    pub fn get(&self, field: Field) -> &str {
        &self.0[field as usize]
    }
}

/// A time as the recipient's clock shows it, with the zone's offset, so that nobody has to guess.
fn moment(at: Timestamp, zone: &TimeZone) -> String {
    match jiff::Timestamp::from_microsecond(at.0) {
        Ok(instant) => instant.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M (UTC%:z)").to_string(),
        // Beyond every calendar there is nothing to tell.
        Err(_) => String::new(),
    }
}

/// The page of a question. It only shows: a mail program or a scanner that follows it answers nothing.
fn link(console: &str, facts: &Facts) -> String {
    let console = console.trim_end_matches('/');
    format!("{console}/n/{}/inbox/{}", in_path(&facts.namespace), in_path(&facts.question))
}

/// One part of a path: whatever is not plain is written as its bytes.
fn in_path(part: &str) -> String {
    let mut escaped = String::new();
    for byte in part.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte))
            }
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}

/// The command for a terminal, only where it can be copied without harm.
fn command(facts: &Facts) -> String {
    let harmless = |text: &str| {
        !text.is_empty()
            && !text.starts_with('-')
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.:".contains(letter))
    };
    match harmless(&facts.namespace) && harmless(&facts.question) {
        true => format!("kagzi inbox show {} --namespace {}", facts.question, facts.namespace),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BERLIN: &str = "Europe/Berlin";

    fn facts() -> Facts {
        Facts {
            namespace: "shop".into(),
            question: "q-1".into(),
            title: "Refund\r\nBcc: eve@example.org".into(),
            message: "the card number".into(),
            details: "{\"amount\": 12}".into(),
            due_at: Some(Timestamp(1_763_467_200_000_000)),
            ..Facts::default()
        }
    }

    fn values(facts: &Facts, payloads_allowed: bool) -> Values {
        let time_zone = TimeZone::get(BERLIN).expect("the bundled zones have it");
        let audience = Audience {
            recipient: "ada",
            time_zone: &time_zone,
            payloads_allowed,
            console_url: Some("https://kagzi.example.org/"),
        };
        Values::of(Occasion::Asked, facts, &audience)
    }

    #[test]
    fn fields_are_found_by_their_names_and_stand_in_their_order() {
        for (at, field) in Field::ALL.iter().enumerate() {
            assert_eq!(Field::from_name(field.name()), Some(*field));
            assert_eq!(*field as usize, at);
        }
    }

    #[test]
    fn payloads_are_told_only_where_the_namespace_allows_it() {
        let (silent, open) = (values(&facts(), false), values(&facts(), true));

        assert_eq!(silent.get(Field::Message), "");
        assert_eq!(silent.get(Field::Details), "");
        assert_eq!(open.get(Field::Message), "the card number");
        assert_eq!(open.get(Field::Details), "{\"amount\": 12}");
    }

    #[test]
    fn a_title_is_one_line_and_a_time_is_the_recipients() {
        let values = values(&facts(), false);

        assert_eq!(values.get(Field::Title), "Refund Bcc: eve@example.org");
        assert_eq!(values.get(Field::Due), "2025-11-18 13:00 (UTC+01:00)");
    }

    #[test]
    fn a_link_is_a_page_of_the_console_whatever_a_namespace_is_called() {
        let odd = Facts { namespace: "a/../b?c#d\"><script>".into(), ..facts() };

        let plain = values(&facts(), false);
        let escaped = values(&odd, false);

        assert_eq!(plain.get(Field::Link), "https://kagzi.example.org/n/shop/inbox/q-1");
        assert_eq!(
            escaped.get(Field::Link),
            "https://kagzi.example.org/n/a%2F..%2Fb%3Fc%23d%22%3E%3Cscript%3E/inbox/q-1"
        );
    }

    #[test]
    fn a_command_is_given_only_where_it_can_be_pasted_without_harm() {
        let with = |namespace: &str| values(&Facts { namespace: namespace.into(), ..facts() }, false);

        assert_eq!(with("shop").get(Field::Command), "kagzi inbox show q-1 --namespace shop");
        for namespace in ["a; rm -rf ~", "$(id)", "`id`", "-x", "a b", ""] {
            assert_eq!(with(namespace).get(Field::Command), "", "{namespace}");
        }
    }
}
