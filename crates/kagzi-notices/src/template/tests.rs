use jiff::tz::TimeZone;

use super::*;
use crate::{Audience, Facts, Occasion};

fn values(facts: &Facts) -> Values {
    let audience =
        Audience { recipient: "ada", time_zone: &TimeZone::UTC, payloads_allowed: true, console_url: None };
    Values::of(Occasion::Asked, facts, &audience)
}

fn titled(title: &str) -> Values {
    values(&Facts { title: title.into(), ..Facts::default() })
}

fn mistake(form: Form, source: &str) -> String {
    Template::read(form, source).expect_err("it has a mistake").to_string()
}

#[test]
fn a_field_stands_for_what_it_says() {
    let template = Template::read(Form::Text, "Dear {{recipient}},\n\n{{ title }} {title}").unwrap();

    assert_eq!(template.fill(&titled("Refund")), "Dear ada,\n\nRefund {title}");
}

#[test]
fn what_a_field_says_is_never_read_as_a_template() {
    let template = Template::read(Form::Text, "{{title}}").unwrap();

    assert_eq!(template.fill(&titled("{{details}} {{namespace}}")), "{{details}} {{namespace}}");
}

#[test]
fn a_line_whose_fields_say_nothing_is_left_out_and_other_lines_stay() {
    let template = Template::read(Form::Text, "a\n\nDue: {{due}}\nBy: {{by}} {{title}}\nb").unwrap();

    assert_eq!(template.fill(&titled("x")), "a\n\nBy:  x\nb");
    assert_eq!(template.fill(&titled("")), "a\n\nb");

    let spaced = Template::read(Form::Text, "a\n\n{{due}}\n\nb\n\n\nc").unwrap();
    assert_eq!(spaced.fill(&titled("")), "a\n\nb\n\n\nc");
}

#[test]
fn mistakes_name_the_field_and_the_line() {
    let unknown = mistake(Form::Text, "one\n{{titel}}");
    assert!(unknown.starts_with("line 2: there is no field {{titel}}; there are occasion, "), "{unknown}");
    let open = mistake(Form::Text, "one\ntwo\n{{title");
    assert_eq!(open, "line 3: {{title is not closed on its line; a field is written {{title}}");
    let nested = mistake(Form::Text, "{{a{{title}}}}");
    assert!(nested.starts_with("line 1: there is no field {{a{{title}}"), "{nested}");
    let two = mistake(Form::Line, "one\ntwo");
    assert_eq!(two, "line 2: a subject is one line, and it says something");
    assert_eq!(mistake(Form::Line, " \n"), "line 1: a subject is one line, and it says something");
}

#[test]
fn templates_are_bounded_in_bytes_and_in_fields() {
    assert!(Template::read(Form::Text, &"x".repeat(TEMPLATE_BYTES_MAX)).is_ok());
    assert!(mistake(Form::Text, &"x".repeat(TEMPLATE_BYTES_MAX + 1)).contains("at most 16384 bytes"));
    assert!(Template::read(Form::Text, &"{{title}}".repeat(TEMPLATE_FIELDS_MAX)).is_ok());
    let many = mistake(Form::Text, &format!("a\n{}", "{{title}}".repeat(TEMPLATE_FIELDS_MAX + 1)));
    assert_eq!(many, "line 2: a template names at most 100 fields");
}

#[test]
fn within_a_tag_only_a_quoted_link_may_stand() {
    let good = [
        "<p>{{title}}</p>",
        "<a href=\"{{link}}\">{{title}}</a>",
        "<a href='{{link}}'>{{link}}</a>",
        "a < b {{link}}",
        "<!-- a \" quote --><p>{{title}}</p>",
        "<p title=\"a > b\">{{title}}</p>",
    ];
    // The fourth begins what a page takes for a tag: a link in it has no quotes.
    for source in good.iter().filter(|source| **source != "a < b {{link}}") {
        assert!(Template::read(Form::Html, source).is_ok(), "{source}");
    }
    let bad = [
        "a < b {{link}}",
        "<a href={{link}}>",
        "<a href=\"{{title}}\">",
        "<p {{title}}>",
        "<{{title}}>",
        "<p title=\"\n{{title}}\">",
        "<p title='\" {{title}}'>",
        "<!-- {{title}} -->",
    ];
    for source in bad {
        let complaint = mistake(Form::Html, source);
        assert!(complaint.contains("within a tag only {{link}} may stand"), "{source}: {complaint}");
    }
}

#[test]
fn what_would_be_active_in_a_mail_program_is_refused() {
    for source in [
        "<SCRIPT>alert(1)</script>",
        "<p>\n<iframe src=x>",
        "<a href=\"javascript:alert(1)\">",
        "<style>@import 'x'</style>",
        "<form action='/answer'>",
        "<meta http-equiv=refresh>",
        "<img src='data:x'>",
        "<object data=x>",
    ] {
        let complaint = mistake(Form::Html, source);
        assert!(complaint.ends_with("has no place in a message"), "{source}: {complaint}");
    }
}
