//! The texts that nobody has to write. All occasions share one shape, so that people find the same thing in
//! the same place; what differs is the subject and the sentence at the top.

use super::OwnTexts;
use crate::{Occasion, occasion::is_over};

struct Words {
    subject: &'static str,
    sentence: &'static str,
}

fn words(occasion: Occasion) -> Words {
    let (subject, sentence) = match occasion {
        Occasion::Asked => ("Your answer is needed: {{title}}", "A workflow waits for your answer."),
        Occasion::Reminder => ("Still waiting for you: {{title}}", "A workflow still waits for your answer."),
        Occasion::Escalated => {
            ("Escalated to you: {{title}}", "Nobody has answered in time, so now you are asked.")
        }
        Occasion::NoLongerNeeded => (
            "No longer needed: {{title}}",
            "You were asked about this. It is settled, and you need not do anything.",
        ),
        Occasion::Incident => {
            ("Incident ({{severity}}): {{title}}", "Something went wrong that a person has to look at.")
        }
        Occasion::ActionCancelled => {
            ("Cancelled: {{title}}", "What you were asked about has been cancelled and will not be done.")
        }
    };
    Words { subject, sentence }
}

/// Names of rows, each with the field that it shows.
const ROWS: [(&str, &str); 8] = [
    ("Type", "type"),
    ("Severity", "severity"),
    ("Due", "due"),
    ("Workflow", "workflow_type"),
    ("Run", "run"),
    ("Step", "step"),
    ("By", "by"),
    ("Reason", "reason"),
];

/// The built-in texts of an occasion, as templates.
pub(super) fn texts(occasion: Occasion) -> OwnTexts {
    let Words { subject, sentence } = words(occasion);
    let action = if is_over(occasion) { "Look at it" } else { "Open it and answer" };
    OwnTexts {
        subject: Some(subject.to_owned()),
        text: Some(text(sentence, action)),
        html: Some(html(sentence, action)),
    }
}

fn text(sentence: &str, action: &str) -> String {
    let rows: String = ROWS.iter().map(|(name, field)| format!("{name}: {{{{{field}}}}}\n")).collect();
    format!(
        "{sentence}\n\n\
         {{{{title}}}}\n\n\
         {rows}\
         \n\
         {{{{message}}}}\n\
         {{{{details}}}}\n\
         \n\
         {action}: {{{{link}}}}\n\
         In a terminal: {{{{command}}}}\n\
         \n\
         Sent to {{{{recipient}}}} by Kagzi, namespace {{{{namespace}}}}. Opening the link answers nothing.\n"
    )
}

fn html(sentence: &str, action: &str) -> String {
    let rows: String = ROWS
        .iter()
        .map(|(name, field)| format!("<tr><td>{name}</td><td>{{{{{field}}}}}</td></tr>\n"))
        .collect();
    format!(
        "<!DOCTYPE html>\n\
         <html><body style=\"font-family: sans-serif\">\n\
         <p>{sentence}</p>\n\
         <h2>{{{{title}}}}</h2>\n\
         <table>\n\
         {rows}\
         </table>\n\
         <pre>{{{{message}}}}</pre>\n\
         <pre>{{{{details}}}}</pre>\n\
         <p><a href=\"{{{{link}}}}\">{action}</a></p>\n\
         <p>In a terminal: <code>{{{{command}}}}</code></p>\n\
         <p><small>Sent to {{{{recipient}}}} by Kagzi, namespace {{{{namespace}}}}. Opening the link answers \
         nothing.</small></p>\n\
         </body></html>\n"
    )
}
