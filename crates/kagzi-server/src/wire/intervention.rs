//! Questions to people as clients see them.

use kagzi_model::{
    Timestamp,
    intervention::{Answer, Ask, Contact, Intervention, Notice, OnTimeout},
};
use kagzi_proto::v1;

use super::time::timestamp;

pub fn intervention(now: Timestamp, row: Intervention) -> v1::Intervention {
    let answered = row.answered.as_ref();
    let votes = row.votes.iter().map(|vote| v1::InterventionVote {
        by: vote.by.to_string(),
        at: Some(timestamp(vote.at)),
        answer: vote.answer.in_words(),
        note: vote.note.clone(),
        forced: vote.forced,
    });
    let comments = row.comments.iter().map(|comment| v1::InterventionComment {
        by: comment.by.to_string(),
        at: Some(timestamp(comment.at)),
        text: comment.text.clone(),
    });
    v1::Intervention {
        intervention_id: row.key.id.to_string(),
        version: row.version,
        state: row.state as i32,
        run_id: row.run.to_string(),
        step: row.step.to_string(),
        workflow_type: row.workflow_type.to_string(),
        assignees: row.assignees.iter().map(ToString::to_string).collect(),
        votes: votes.collect(),
        claimed_by: row.claimed(now).map(|claim| claim.by.to_string()).unwrap_or_default(),
        claimed_until: row.claimed(now).map(|claim| timestamp(claim.until)),
        comments: comments.collect(),
        escalations: row.level,
        answered_by: answered.map(|answered| answered.by.to_string()).unwrap_or_default(),
        answer_source: answered.map(|answered| answered.source.name().to_owned()).unwrap_or_default(),
        answer: answered
            .and_then(|answered| answered.answer.as_ref())
            .map(Answer::in_words)
            .unwrap_or_default(),
        note: answered.map(|answered| answered.note.clone()).unwrap_or_default(),
        closed_at: row.closed_at.map(timestamp),
        cancelled_because: row.cancelled.clone().unwrap_or_default(),
        created_at: Some(timestamp(row.created_at)),
        opened_at: row.opened_at.map(timestamp),
        expires_at: row.expires_at.map(timestamp),
        snoozed_by: row
            .snoozed
            .iter()
            .filter(|snooze| snooze.until > now)
            .map(|snooze| snooze.by.to_string())
            .collect(),
        question: Some(question(row.ask)),
    }
}

fn question(ask: Ask) -> v1::Question {
    let text = |value: Option<serde_json::Value>| value.map(|value| value.to_string()).unwrap_or_default();
    let (browser_url, browser_instructions) =
        ask.browser.map(|browser| (browser.url, browser.instructions)).unwrap_or_default();
    v1::Question {
        r#type: ask.kind as i32,
        title: ask.title,
        message: ask.message,
        details: text(ask.details),
        options: ask
            .options
            .into_iter()
            .map(|choice| v1::QuestionOption {
                id: choice.id.to_string(),
                label: choice.label,
                description: choice.description,
                default: choice.default,
                destructive: choice.destructive,
            })
            .collect(),
        schema: text(ask.schema),
        browser_url,
        browser_instructions,
        arguments: text(ask.arguments),
        arguments_sha256: ask.arguments_hash.to_string(),
        editable: ask.editable,
        assignees: ask.assignees.iter().map(ToString::to_string).collect(),
        approvals: ask.quorum.approve.into(),
        rejections: ask.quorum.reject.into(),
        priority: ask.priority.into(),
        timeout_ms: ask.timeout_ms,
        on_timeout: match ask.on_timeout {
            OnTimeout::Standard => String::new(),
            OnTimeout::Fail => "fail".to_owned(),
            OnTimeout::Choose(id) => id.to_string(),
        },
        escalation: ask
            .escalation
            .into_iter()
            .map(|step| v1::QuestionEscalation { after_ms: step.after_ms, to: step.to.to_string() })
            .collect(),
        remind_ms: ask.remind_ms,
        four_eyes: ask.four_eyes,
    }
}

pub fn notice(row: Notice) -> v1::Notice {
    v1::Notice {
        notice_id: row.id.to_string(),
        channel: row.channel.name().to_owned(),
        recipient: row.recipient.to_string(),
        message: row.message.name().to_owned(),
        state: row.state.name().to_owned(),
        attempts: row.attempts,
        last_error: row.last_error.unwrap_or_default(),
        created_at: Some(timestamp(row.created_at)),
        sent_at: row.sent_at.map(timestamp),
        next_at: row.next_at.map(timestamp),
    }
}

pub fn contact(name: &str, contact: Contact) -> v1::Contact {
    v1::Contact {
        name: name.to_owned(),
        email: contact.email,
        webhook: contact.webhook,
        groups: contact.groups.iter().map(ToString::to_string).collect(),
        channels: contact.channels.iter().map(|channel| channel.name().to_owned()).collect(),
        time_zone: contact.time_zone,
        quiet_from: contact.quiet_from,
        quiet_to: contact.quiet_to,
    }
}
