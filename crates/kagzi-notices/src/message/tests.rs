use jiff::tz::TimeZone;
use kagzi_model::Timestamp;

use super::*;
use crate::{Audience, Facts, Severity};

fn facts() -> Facts {
    Facts {
        namespace: "shop".into(),
        question: "0199a0b2-7c1e-7d33-a5f0-6f1f3c1d2e4f".into(),
        kind: "approval".into(),
        title: "Refund order 42".into(),
        workflow_type: "refund".into(),
        run: "0199a0b2-0000-7000-8000-000000000001".into(),
        step: "approve".into(),
        due_at: Some(Timestamp(1_763_467_200_000_000)),
        message: "The customer waits.".into(),
        details: "{\"amount\": 12}".into(),
        ..Facts::default()
    }
}

fn message(texts: &Texts, occasion: Occasion, facts: &Facts, payloads_allowed: bool) -> Message {
    let time_zone = TimeZone::get("Europe/Berlin").expect("the bundled zones have it");
    let audience = Audience {
        recipient: "ada",
        time_zone: &time_zone,
        payloads_allowed,
        console_url: Some("https://kagzi.example.org"),
    };
    texts.message(occasion, &Values::of(occasion, facts, &audience))
}

fn shown(message: &Message) -> String {
    format!("Subject: {}\n\n{}\n\n--- html ---\n{}", message.subject, message.text, message.html)
}

#[test]
fn the_built_in_messages_are_those_that_were_reviewed() {
    for occasion in Occasion::ALL {
        let facts = match occasion {
            Occasion::Asked | Occasion::Reminder | Occasion::Escalated => facts(),
            Occasion::NoLongerNeeded => Facts { by: "grace".into(), reason: "answered".into(), ..facts() },
            Occasion::Incident => {
                Facts { severity: Some(Severity::Critical), due_at: None, step: String::new(), ..facts() }
            }
            Occasion::ActionCancelled => Facts { reason: "the run was cancelled".into(), ..facts() },
        };
        let message = message(&Texts::built_in(), occasion, &facts, false);

        insta::assert_snapshot!(occasion.name(), shown(&message));
    }
}

#[test]
fn payloads_are_in_no_part_of_a_message_unless_the_namespace_allows_it() {
    for occasion in Occasion::ALL {
        let silent = shown(&message(&Texts::built_in(), occasion, &facts(), false));
        let open = shown(&message(&Texts::built_in(), occasion, &facts(), true));

        assert!(!silent.contains("The customer waits") && !silent.contains("amount"), "{silent}");
        assert!(open.contains("The customer waits.") && open.contains("{\"amount\": 12}"), "{open}");
        assert!(open.contains("{&quot;amount&quot;: 12}"), "{open}");
    }
}

#[test]
fn a_namespace_has_its_own_texts_where_it_wrote_some() {
    let own = OwnTexts { subject: Some("[{{namespace}}] {{title}}".into()), ..OwnTexts::default() };
    let texts = Texts::with(&BTreeMap::from([("asked".to_owned(), own)])).unwrap();

    let asked = message(&texts, Occasion::Asked, &facts(), false);
    let reminder = message(&texts, Occasion::Reminder, &facts(), false);
    let standard = message(&Texts::built_in(), Occasion::Asked, &facts(), false);

    assert_eq!(asked.subject, "[shop] Refund order 42");
    assert_eq!(asked.text, standard.text);
    assert_eq!(reminder, message(&Texts::built_in(), Occasion::Reminder, &facts(), false));
}

#[test]
fn a_mistake_names_the_message_the_part_the_line_and_the_field() {
    let with = |name: &str, own: OwnTexts| {
        Texts::with(&BTreeMap::from([(name.to_owned(), own)])).expect_err("it has a mistake").to_string()
    };

    let html = with("incident", OwnTexts { html: Some("<p>\n{{sevrity}}".into()), ..OwnTexts::default() });
    let unknown = with("askd", OwnTexts::default());

    assert!(html.starts_with("incident.html: line 2: there is no field {{sevrity}}"), "{html}");
    assert_eq!(
        unknown,
        "there is no message called 'askd'; there are asked, reminder, escalated, no_longer_needed, \
         incident, action_cancelled"
    );
}

/// Titles, names and reasons as somebody writes them who wants to harm whoever reads.
const HOSTILE: [&str; 14] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "</h2><a href=\"https://evil.example\">click</a>",
    "' onmouseover='alert(1)",
    "Pay\r\nBcc: everybody@example.org",
    "Pay\nContent-Type: text/html\n\n<b>hi</b>",
    "Pay\u{85}X-Header: 1",
    "Pay\u{2028}X-Header: 1\u{2029}",
    "\0\u{1b}[31mred\u{7}",
    "\u{202e}txt.exe\u{202c}",
    "\u{2066}hidden\u{2069}\u{200b}\u{feff}",
    "{{details}}{{message}}",
    "=?utf-8?q?=0d=0aBcc:_eve?=",
    "<!-- \u{e0041}\u{e0042} -->",
];

#[test]
fn no_text_of_others_becomes_markup_a_header_or_another_sentence() {
    for hostile in HOSTILE {
        let facts = Facts {
            title: hostile.into(),
            step: hostile.into(),
            by: hostile.into(),
            reason: hostile.into(),
            workflow_type: hostile.into(),
            namespace: hostile.into(),
            question: hostile.into(),
            run: hostile.into(),
            kind: hostile.into(),
            message: hostile.into(),
            ..facts()
        };
        for occasion in Occasion::ALL {
            let plain = message(&Texts::built_in(), occasion, &self::facts(), true);
            let message = message(&Texts::built_in(), occasion, &facts, true);

            let forbidden = |letter: char| {
                letter.is_control() || ('\u{202a}'..='\u{202e}').contains(&letter) || letter == '\u{2066}'
            };
            assert!(!message.subject.contains(forbidden), "{:?}", message.subject);
            assert!(!message.text.contains(|letter| letter != '\n' && forbidden(letter)), "{hostile:?}");
            assert!(!message.text.contains("amount\": 12}{"), "a field was read as a template: {hostile:?}");
            // A page has the tags of its template and no others.
            let tags = |html: &str| html.matches('<').count();
            assert!(tags(&message.html) <= tags(&plain.html) + 8, "{}", message.html);
            for marked in ["<script", "<img", "https://evil.example\"", "onerror=alert(1)>", "<b>"] {
                assert!(!message.html.contains(marked), "{marked}: {}", message.html);
            }
        }
    }
}

#[test]
fn whatever_the_size_of_what_is_told_a_message_stays_small() {
    let huge = "x".repeat(5_000_000);
    let facts =
        Facts { title: huge.clone(), message: huge.clone(), details: huge.clone(), by: huge, ..facts() };

    let message = message(&Texts::built_in(), Occasion::Asked, &facts, true);

    assert!(message.subject.chars().count() <= 150, "{}", message.subject.len());
    assert!(message.text.len() < 20_000, "{}", message.text.len());
    assert!(message.html.len() < 20_000, "{}", message.html.len());
}
