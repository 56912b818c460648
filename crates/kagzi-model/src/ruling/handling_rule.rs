//! A rule that people write: which failures it is for, and what is done about them.

use serde::{Deserialize, Serialize};

use crate::{
    Class, Failure, Name, RetryPolicy, Rung, Severity, check_name,
    limits::{HANDLING_MESSAGE_BYTES_MAX, HANDLING_RULES_MAX},
};

/// Says what to do about failures of a kind, a code or a status. A rule that leaves `kind`, `code` or `http`
/// open is for all of them; what it leaves open otherwise is said by weaker rules and by what is built in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HandlingRule {
    /// The kind of the step: `external_api`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Name>,
    /// The failure's code, or the name of a class for everything in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Name>,
    /// The status of the HTTP answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Rung>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_retry: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interaction: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
}

/// A list of rules that makes no sense: which rule, which field, its value, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rule {at}, {field} is {value}: {next}")]
pub struct HandlingRuleError {
    /// Counted from 1; 0 = the list itself.
    pub at: usize,
    pub field: &'static str,
    pub value: String,
    pub next: String,
}

impl HandlingRule {
    /// Whether the rule is for this failure of a step of this kind.
    pub fn fits(&self, kind: Option<&str>, failure: &Failure, class: Class) -> bool {
        let kind_fits = self.kind.as_deref().is_none_or(|wanted| kind == Some(wanted));
        let code_fits =
            self.code.as_deref().is_none_or(|wanted| wanted == &*failure.code || wanted == class.name());
        let http_fits = self.http.is_none_or(|wanted| failure.http_status == Some(wanted));
        kind_fits && code_fits && http_fits
    }

    fn is_for_everything(&self) -> bool {
        self.kind.is_none() && self.code.is_none() && self.http.is_none()
    }

    fn says_nothing(&self) -> bool {
        let HandlingRule { kind, code, http, .. } = self.clone();
        *self == HandlingRule { kind, code, http, ..HandlingRule::default() }
    }

    fn check(&self, at: usize) -> Result<(), HandlingRuleError> {
        let wrong = |field, value: String, next: &str| {
            Err(HandlingRuleError { at, field, value, next: next.to_owned() })
        };
        for (field, name) in [
            ("kind", &self.kind),
            ("code", &self.code),
            ("before_retry", &self.before_retry),
            ("hint", &self.hint),
            ("interaction", &self.interaction),
        ] {
            if let Some(name) = name
                && let Err(problem) = check_name(name)
            {
                return wrong(field, format!("{:?}", &**name), &format!("it {problem}"));
            }
        }
        if let Some(status) = self.http
            && !(100..=599).contains(&status)
        {
            return wrong("http", status.to_string(), "write the status of an answer, 100 to 599");
        }
        if let Some(message) = &self.message
            && (message.is_empty() || message.len() > HANDLING_MESSAGE_BYTES_MAX)
        {
            let next = format!("write 1 to {HANDLING_MESSAGE_BYTES_MAX} bytes, or leave it out");
            return wrong("message", format!("{} bytes long", message.len()), &next);
        }
        if let Some(Err(problem)) = self.retry.as_ref().map(RetryPolicy::check) {
            return wrong(problem.field, problem.value, problem.rule);
        }
        if self.retry.is_some() && self.first.is_some_and(|first| first != Rung::Retry) {
            let first = self.first.map_or("", Rung::name);
            return wrong("first", first.to_owned(), "with it nothing is retried: leave out `retry`");
        }
        if self.is_for_everything() {
            return wrong("kind", "not set".to_owned(), "say kind, code or http: which failures is it for?");
        }
        if self.says_nothing() {
            return wrong("first", "not set".to_owned(), "say what to do, e.g. first = \"ask_user\"");
        }
        Ok(())
    }
}

/// Refuses a list that is too long or has a rule that makes no sense.
pub fn check_rules(rules: &[HandlingRule]) -> Result<(), HandlingRuleError> {
    if rules.len() > HANDLING_RULES_MAX {
        let next = format!("keep at most {HANDLING_RULES_MAX}; a rule without a kind is for all kinds");
        let value = format!("{} long", rules.len());
        return Err(HandlingRuleError { at: 0, field: "rule", value, next });
    }
    rules.iter().enumerate().try_for_each(|(at, rule)| rule.check(at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &str) -> HandlingRule {
        HandlingRule { code: Some(code.into()), first: Some(Rung::AskUser), ..HandlingRule::default() }
    }

    #[test]
    fn nonsense_is_refused_with_rule_field_value_and_what_to_do() {
        let retry = |retry| HandlingRule { retry: Some(retry), first: None, ..of("X") };
        let nan = RetryPolicy { jitter: Some(f64::NAN), ..RetryPolicy::default() };
        let wrong = [
            (HandlingRule { http: Some(42), ..of("X") }, "http", "42"),
            (of(""), "code", "\"\""),
            (HandlingRule { kind: Some(" x".into()), ..of("X") }, "kind", "\" x\""),
            (HandlingRule { message: Some(String::new()), ..of("X") }, "message", "0 bytes long"),
            (HandlingRule { message: Some("x".repeat(1_025)), ..of("X") }, "message", "1025 bytes long"),
            (retry(nan), "jitter", "NaN"),
            (HandlingRule { retry: Some(RetryPolicy::default()), ..of("X") }, "first", "ask_user"),
            (HandlingRule { code: None, ..of("X") }, "kind", "not set"),
            (HandlingRule { first: None, ..of("X") }, "first", "not set"),
        ];
        for (rule, field, value) in wrong {
            let error = check_rules(&[of("FINE"), rule]).expect_err(field);
            assert_eq!((error.at, error.field, error.value.as_str()), (2, field, value));
            assert!(!error.next.is_empty(), "{error}");
        }
    }

    #[test]
    fn two_hundred_rules_are_a_list_and_one_more_is_not() {
        let mut rules = vec![of("X"); HANDLING_RULES_MAX];
        assert_eq!(check_rules(&rules), Ok(()));
        rules.push(of("X"));
        assert_eq!(check_rules(&rules).map_err(|error| (error.at, error.value)), Err((0, "201 long".into())));
    }

    #[test]
    fn a_word_that_no_rule_has_is_not_read() {
        assert!(serde_json::from_str::<HandlingRule>(r#"{"code":"X","frist":"retry"}"#).is_err());
        assert!(serde_json::from_str::<HandlingRule>(r#"{"code":"X","first":"panic"}"#).is_err());
    }
}
