//! What is asked, of whom, and what time does about it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Name;
use crate::{
    Millis, check_name,
    limits::{
        ASK_BYTES_MAX, ASSIGNEES_MAX, ESCALATIONS_MAX, OPTIONS_MAX, REMIND_MS_MIN, TITLE_BYTES_MAX,
        WAIT_MS_MAX,
    },
};

/// What kind of answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterventionType {
    /// One of several options.
    Decision = 1,
    /// Data of a given form.
    Input = 2,
    /// Yes or no to exactly what is shown.
    Approval = 3,
    /// Something done by hand in a browser.
    BrowserTakeover = 4,
    /// What becomes of a failure that nothing else mends.
    ErrorResolution = 5,
}

impl InterventionType {
    /// All of them.
    pub const ALL: [InterventionType; 5] = [
        InterventionType::Decision,
        InterventionType::Input,
        InterventionType::Approval,
        InterventionType::BrowserTakeover,
        InterventionType::ErrorResolution,
    ];

    /// The one with this number.
    pub fn from_number(number: i64) -> Option<InterventionType> {
        InterventionType::ALL.into_iter().find(|kind| *kind as i64 == number)
    }

    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            InterventionType::Decision => "decision",
            InterventionType::Input => "input",
            InterventionType::Approval => "approval",
            InterventionType::BrowserTakeover => "browser_takeover",
            InterventionType::ErrorResolution => "error_resolution",
        }
    }
}

pub use kagzi_catalogue::Severity;

/// One of the answers to a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    pub id: Name,
    pub label: String,
    #[serde(default)]
    pub description: String,
    /// What is decided when nobody answers in time.
    #[serde(default)]
    pub default: bool,
    /// Worth a second look.
    #[serde(default)]
    pub destructive: bool,
}

/// What somebody is to do by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Browser {
    /// `http` or `https`.
    pub url: String,
    #[serde(default)]
    pub instructions: String,
}

/// How many must agree. Only approvals have more than one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quorum {
    pub approve: u16,
    pub reject: u16,
}

impl Default for Quorum {
    fn default() -> Self {
        Quorum { approve: 1, reject: 1 }
    }
}

/// What the end of its time means.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// As its type has it: a decision takes its default option, an approval is rejected, everything else
    /// fails.
    #[default]
    Standard,
    /// The wait fails.
    Fail,
    /// This option is taken.
    Choose(Name),
}

/// Somebody else is asked too, when so much time has passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalation {
    /// Counts from when the question opened.
    pub after_ms: Millis,
    /// A person or a group.
    pub to: Name,
}

/// The question as its code asks it. It never changes, so an answer always fits what was shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    pub kind: InterventionType,
    pub title: String,
    #[serde(default)]
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    #[serde(default)]
    pub options: Vec<Choice>,
    /// The form of the data, as JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub browser: Option<Browser>,
    /// What is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// SHA-256 of it in hexadecimal digits: the approval counts for nothing else.
    #[serde(default)]
    pub arguments_hash: Name,
    /// Whoever approves may change the arguments.
    #[serde(default)]
    pub editable: bool,
    /// People, and groups as `group:NAME`. Nobody: the run's user, or everybody.
    #[serde(default)]
    pub assignees: Vec<Name>,
    #[serde(default)]
    pub quorum: Quorum,
    /// Who started the run may not answer.
    #[serde(default)]
    pub four_eyes: bool,
    /// Higher is more urgent, 0 to 9.
    #[serde(default)]
    pub priority: u8,
    /// None: the server's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Millis>,
    #[serde(default)]
    pub on_timeout: OnTimeout,
    /// In the order of their times.
    #[serde(default)]
    pub escalation: Vec<Escalation>,
    /// Everybody who is asked is reminded this often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remind_ms: Option<Millis>,
}

/// What is wrong with a question, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {rule}")]
pub struct AskError {
    pub field: &'static str,
    pub rule: String,
}

fn wrong(field: &'static str, rule: impl Into<String>) -> AskError {
    AskError { field, rule: rule.into() }
}

impl Ask {
    /// A question of this type with this title and nothing else said.
    pub fn new(kind: InterventionType, title: impl Into<String>) -> Ask {
        Ask {
            kind,
            title: title.into(),
            message: String::new(),
            details: None,
            options: Vec::new(),
            schema: None,
            browser: None,
            arguments: None,
            arguments_hash: Name::empty(),
            editable: false,
            assignees: Vec::new(),
            quorum: Quorum::default(),
            four_eyes: false,
            priority: 0,
            timeout_ms: None,
            on_timeout: OnTimeout::Standard,
            escalation: Vec::new(),
            remind_ms: None,
        }
    }

    /// The option with this id.
    pub fn option(&self, id: &str) -> Option<&Choice> {
        self.options.iter().find(|choice| *choice.id == *id)
    }

    /// Whether it can be asked. Its schema is compiled by the server, which has what that needs.
    pub fn check(&self) -> Result<(), AskError> {
        if self.title.trim().is_empty() || self.title.len() > TITLE_BYTES_MAX {
            return Err(wrong("title", format!("it must have 1 to {TITLE_BYTES_MAX} bytes")));
        }
        let bytes = serde_json::to_string(self).map_or(usize::MAX, |text| text.len());
        if bytes > ASK_BYTES_MAX {
            return Err(wrong("ask", format!("it has {bytes} bytes, at most {ASK_BYTES_MAX} are allowed")));
        }
        self.check_people()?;
        self.check_answers()?;
        self.check_times()
    }

    fn check_people(&self) -> Result<(), AskError> {
        if self.assignees.len() > ASSIGNEES_MAX {
            return Err(wrong("assignees", format!("at most {ASSIGNEES_MAX} are allowed")));
        }
        let named = self.assignees.iter().chain(self.escalation.iter().map(|step| &step.to));
        for name in named {
            check_name(name).map_err(|error| wrong("assignees", error.to_string()))?;
        }
        let Quorum { approve, reject } = self.quorum;
        if approve == 0 || reject == 0 {
            return Err(wrong("quorum", "at least one vote decides"));
        }
        let many = approve > 1 || reject > 1;
        if many && self.kind != InterventionType::Approval {
            return Err(wrong("quorum", "only an approval has more than one vote"));
        }
        let groups = self.assignees.iter().any(|name| super::is_group(name));
        let people = self.assignees.len();
        if !groups && people > 0 && usize::from(approve) > people {
            let rule = format!("{approve} must approve and {people} are asked: it could never be reached");
            return Err(wrong("quorum", rule));
        }
        Ok(())
    }

    fn check_answers(&self) -> Result<(), AskError> {
        if self.options.len() > OPTIONS_MAX {
            return Err(wrong("options", format!("at most {OPTIONS_MAX} are allowed")));
        }
        for (at, choice) in self.options.iter().enumerate() {
            check_name(&choice.id).map_err(|error| wrong("options", error.to_string()))?;
            if self.options[..at].iter().any(|other| other.id == choice.id) {
                return Err(wrong("options", format!("'{}' is there twice", choice.id)));
            }
        }
        if self.options.iter().filter(|choice| choice.default).count() > 1 {
            return Err(wrong("options", "only one can be the default"));
        }
        match self.kind {
            InterventionType::Decision if self.options.is_empty() => {
                return Err(wrong("options", "a decision has at least one"));
            }
            InterventionType::Input if self.schema.is_none() => {
                return Err(wrong("schema", "an input says what form its data has"));
            }
            InterventionType::BrowserTakeover if self.browser.is_none() => {
                return Err(wrong("browser", "a takeover says where"));
            }
            InterventionType::Decision
            | InterventionType::Input
            | InterventionType::Approval
            | InterventionType::BrowserTakeover
            | InterventionType::ErrorResolution => {}
        }
        if let Some(browser) = &self.browser
            && !(browser.url.starts_with("https://") || browser.url.starts_with("http://"))
        {
            return Err(wrong("browser.url", "it must begin with http:// or https://"));
        }
        match &self.on_timeout {
            OnTimeout::Choose(id) if self.option(id).is_none() => {
                Err(wrong("on_timeout", format!("there is no option '{id}'")))
            }
            OnTimeout::Choose(_) | OnTimeout::Standard | OnTimeout::Fail => Ok(()),
        }
    }

    fn check_times(&self) -> Result<(), AskError> {
        let fits = |ms: Millis| (1..=WAIT_MS_MAX).contains(&ms);
        if self.timeout_ms.is_some_and(|ms| !fits(ms)) {
            return Err(wrong("timeout_ms", "it must be above 0, and at most ten years"));
        }
        if self.remind_ms.is_some_and(|ms| !fits(ms) || ms < REMIND_MS_MIN) {
            return Err(wrong("remind_ms", format!("it must be at least {REMIND_MS_MIN} ms")));
        }
        if self.escalation.len() > ESCALATIONS_MAX {
            return Err(wrong("escalation", format!("at most {ESCALATIONS_MAX} steps are allowed")));
        }
        let mut before = 0;
        for step in &self.escalation {
            if !fits(step.after_ms) || step.after_ms < before {
                return Err(wrong("escalation", "each step comes after the one before it"));
            }
            before = step.after_ms;
        }
        if let (Some(last), Some(timeout)) = (self.escalation.last(), self.timeout_ms)
            && last.after_ms >= timeout
        {
            return Err(wrong("escalation", "its last step would come after the question's time is over"));
        }
        Ok(())
    }
}
