//! What time does to a question: reminders, escalations, and the end of its time. Never refused, never twice.

use super::{
    Answer, Answered, Intervention, InterventionChange, InterventionState, InterventionType, Message,
    OnTimeout, Recorded, Source, Tell, Word, decide::no_longer_needed,
};
use crate::{Name, Timestamp, codes::QUESTION_EXPIRED};

/// When the next reminder is due.
fn reminder_at(row: &Intervention) -> Option<Timestamp> {
    let (every, since) = (row.ask.remind_ms?, row.opened_at?);
    Some(since.plus_ms(every.saturating_mul(i64::from(row.reminded) + 1)))
}

/// When the next escalation is due.
fn escalation_at(row: &Intervention) -> Option<Timestamp> {
    let step = row.ask.escalation.get(row.level as usize)?;
    Some(row.opened_at?.plus_ms(step.after_ms))
}

/// When time has something to do with it: the earliest of reminder, escalation and its end.
pub fn next_at(row: &Intervention) -> Option<Timestamp> {
    match row.state {
        InterventionState::Pending => {
            [reminder_at(row), escalation_at(row), row.expires_at].into_iter().flatten().min()
        }
        InterventionState::Queued
        | InterventionState::Responded
        | InterventionState::Expired
        | InterventionState::Cancelled => None,
    }
}

/// Everything that is due at this time, in order: a clock that leaps skips no escalation, and does none of
/// them twice. Of several reminders that were missed only one is sent. Nothing is due: none.
pub fn tick(now: Timestamp, seen: &Intervention) -> Option<InterventionChange> {
    next_at(seen).filter(|at| *at <= now)?;
    let mut row = seen.clone();
    row.version += 1;
    let (mut words, mut missed) = (Vec::new(), false);
    while let Some(at) = next_at(&row).filter(|at| *at <= now) {
        if escalation_at(&row) == Some(at) {
            let to = row.ask.escalation[row.level as usize].to.clone();
            row.level += 1;
            words.push(Word::new(Message::Escalated, &to, row.level));
            if !row.assignees.contains(&to) {
                row.assignees.push(to);
            }
        } else if row.expires_at == Some(at) {
            let (ended, told) = expire(now, row, words);
            return Some(InterventionChange { tell: Some(told), ..ended });
        } else {
            row.reminded += 1;
            missed = true;
        }
    }
    if missed {
        let reminded = row.reminded;
        words.extend(row.assignees.iter().map(|to| Word::new(Message::Reminder, to, reminded)));
    }
    Some(InterventionChange { row, tell: None, words, closed: false, recorded: Recorded::Done })
}

fn expire(now: Timestamp, mut row: Intervention, mut words: Vec<Word>) -> (InterventionChange, Tell) {
    let answer = when_time_is_over(&row);
    let note = "nobody answered in time".to_owned();
    let answered = Answered { by: Name::empty(), source: Source::TimeoutDefault, at: now, answer, note };
    let told = Tell::answer(row.key.id, &row.ask.arguments_hash, &answered).unwrap_or_else(|| {
        let why = format!("nobody answered '{}' in time (question {})", row.ask.title, row.key.id);
        Tell::failure(QUESTION_EXPIRED, &why)
    });
    words.extend(no_longer_needed(&row, None));
    row.state = InterventionState::Expired;
    row.closed_at = Some(now);
    row.answered = Some(answered);
    let change = InterventionChange { row, tell: None, words, closed: true, recorded: Recorded::Decided };
    (change, told)
}

/// What the end of its time means. None: the wait fails.
fn when_time_is_over(row: &Intervention) -> Option<Answer> {
    match (&row.ask.on_timeout, row.ask.kind) {
        (OnTimeout::Fail, _) => None,
        (OnTimeout::Choose(id), _) => Some(Answer::Option(id.clone())),
        (OnTimeout::Standard, InterventionType::Decision) => {
            let default = row.ask.options.iter().find(|choice| choice.default);
            default.map(|choice| Answer::Option(choice.id.clone()))
        }
        (OnTimeout::Standard, InterventionType::Approval) => Some(Answer::Rejected),
        (
            OnTimeout::Standard,
            InterventionType::Input | InterventionType::BrowserTakeover | InterventionType::ErrorResolution,
        ) => None,
    }
}
