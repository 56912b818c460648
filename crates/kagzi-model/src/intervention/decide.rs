//! What people do to a question. Each request is safe to send twice.

use serde::{Deserialize, Serialize};

use super::{
    Answer, Answered, Ask, Claim, Comment, Intervention, InterventionKey, InterventionState,
    InterventionType, Message, Source, Tell, Vote, Word,
};
use crate::{
    Millis, Name, RunId, Timestamp, ago,
    codes::QUESTION_CANCELLED,
    limits::{CLAIM_MS, COMMENTS_MAX, WAIT_MS_MAX},
};

/// A command, the question that it is about, and its run as the caller has read it.
#[derive(Debug, Clone, PartialEq)]
pub struct InterventionRequest {
    pub key: InterventionKey,
    pub run: RunId,
    pub command: InterventionCommand,
}

/// An answer on its way.
#[derive(Debug, Clone, PartialEq)]
pub struct Answering {
    pub by: Name,
    pub answer: Answer,
    /// The caller's own name for this answer: the same again is answered as the first time.
    pub id: Name,
    pub note: String,
    /// Only if nobody changed the question since.
    pub if_version: Option<u64>,
    /// Also where somebody else has claimed it.
    pub force: bool,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum InterventionCommand {
    /// Answers, or adds a vote.
    Answer(Box<Answering>),
    /// Says that one works on it. Repeated, it lasts longer.
    Claim { by: Name },
    /// Takes that back.
    Release { by: Name },
    /// Asks these people instead.
    Assign { by: Name, assignees: Vec<Name> },
    /// Does not want to see it for so long.
    Snooze { by: Name, ms: Millis },
    /// Says something to the others.
    Comment { by: Name, text: String },
    /// Takes the question back: the wait fails.
    Cancel { by: Name, why: String },
    /// The run ended, or its code does not wait any more.
    Drop { why: &'static str },
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Recorded {
    /// The question is answered.
    Decided,
    /// A vote: so many of so many are there.
    Vote { votes: u16, of: u16 },
    /// It was done before.
    Before,
    /// Done; it was no answer.
    Done,
}

/// What follows from a command or from time.
#[derive(Debug, Clone, PartialEq)]
pub struct InterventionChange {
    /// The row as it is now; it was changed if its version rose.
    pub row: Intervention,
    /// What the run is told.
    pub tell: Option<Tell>,
    /// Who is told what, in order.
    pub words: Vec<Word>,
    /// It is no longer open: whoever was asked has room for another one.
    pub closed: bool,
    pub recorded: Recorded,
}

/// Why a request is refused, in words for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InterventionRejection {
    #[error(
        "namespace '{}' has no question {}; list those that are open with: kagzi inbox --all", .0.namespace, .0.id
    )]
    NotFound(InterventionKey),
    #[error("question {id} is closed: {why}")]
    Closed { id: uuid::Uuid, why: String },
    #[error("{by} works on it since {since} ago; ask {by}, or answer with force")]
    Claimed { by: Name, since: String },
    #[error("{by} is not asked; those who are: {asked}")]
    NotAsked { by: Name, asked: String },
    #[error("{by} started the run, and this question wants another pair of eyes")]
    FourEyes { by: Name },
    #[error("this question is at version {current}, expected_version is {named}; read it again")]
    Stale { named: u64, current: u64 },
    #[error("{0}")]
    Unfit(String),
    #[error("question {0} cannot be read here")]
    Unreadable(uuid::Uuid),
}

/// What a new question consists of.
pub struct NewIntervention {
    pub key: InterventionKey,
    pub run: RunId,
    pub step: Name,
    pub workflow_type: Name,
    pub ask: Ask,
    /// The person of the run, who is asked where the code names nobody.
    pub user: Option<Name>,
}

/// A question is asked. `full`: everybody who is named has as many as one may have, so it waits.
pub fn create(now: Timestamp, new: NewIntervention, standard_ms: Millis, full: bool) -> InterventionChange {
    let NewIntervention { key, run, step, workflow_type, mut ask, user } = new;
    let mut assignees = ask.assignees.clone();
    if assignees.is_empty() {
        assignees.extend(user.clone());
    }
    if ask.timeout_ms.is_none() {
        // Escalations come before the end of its time, whatever the server's time is.
        let last = ask.escalation.last().map_or(0, |step| step.after_ms);
        ask.timeout_ms = Some(standard_ms.max(last.saturating_add(1)).min(WAIT_MS_MAX));
    }
    let row = Intervention {
        key,
        version: 1,
        run,
        step,
        workflow_type,
        assignees,
        severity: None,
        asker: user.unwrap_or_default(),
        state: InterventionState::Queued,
        votes: Vec::new(),
        claim: None,
        snoozed: Vec::new(),
        comments: Vec::new(),
        level: 0,
        reminded: 0,
        answered: None,
        cancelled: None,
        created_at: now,
        opened_at: None,
        closed_at: None,
        expires_at: None,
        ask,
    };
    if full {
        let recorded = Recorded::Done;
        return InterventionChange { row, tell: None, words: Vec::new(), closed: false, recorded };
    }
    let mut change = open(now, row);
    change.row.version = 1;
    change
}

/// A queued question opens: its clock begins, and people are told.
pub fn open(now: Timestamp, mut row: Intervention) -> InterventionChange {
    row.version += 1;
    row.state = InterventionState::Pending;
    row.opened_at = Some(now);
    row.expires_at = row.ask.timeout_ms.map(|ms| now.plus_ms(ms));
    let words = row.assignees.iter().map(|to| Word::new(Message::Asked, to, 0)).collect();
    InterventionChange { row, tell: None, words, closed: false, recorded: Recorded::Done }
}

/// Decides one request.
pub fn decide(
    now: Timestamp,
    seen: &Intervention,
    groups: &[Name],
    command: &InterventionCommand,
) -> Result<InterventionChange, InterventionRejection> {
    let mut row = seen.clone();
    row.version += 1;
    let done = |row| {
        let (tell, words, closed) = (None, Vec::new(), false);
        Ok(InterventionChange { row, tell, words, closed, recorded: Recorded::Done })
    };
    let nothing = || {
        let (row, tell, words, closed) = (seen.clone(), None, Vec::new(), false);
        Ok(InterventionChange { row, tell, words, closed, recorded: Recorded::Before })
    };
    match command {
        InterventionCommand::Drop { .. } if !seen.state.is_open() => return nothing(),
        InterventionCommand::Answer(answering)
            if seen.votes.iter().any(|vote| vote.id == answering.id && vote.by == answering.by) =>
        {
            return nothing();
        }
        InterventionCommand::Cancel { .. } if seen.state == InterventionState::Cancelled => {
            return nothing();
        }
        // Whoever looks at it later may still have something to add.
        InterventionCommand::Comment { .. } => {}
        InterventionCommand::Answer(_)
        | InterventionCommand::Claim { .. }
        | InterventionCommand::Release { .. }
        | InterventionCommand::Assign { .. }
        | InterventionCommand::Snooze { .. }
        | InterventionCommand::Cancel { .. }
        | InterventionCommand::Drop { .. } => still_open(seen)?,
    }
    match command {
        InterventionCommand::Answer(answering) => answer(now, row, groups, answering),
        InterventionCommand::Claim { by } => {
            may_act(now, seen, by, false)?;
            row.claim = Some(Claim { by: by.clone(), until: now.plus_ms(CLAIM_MS) });
            done(row)
        }
        InterventionCommand::Release { by } => match seen.claimed(now) {
            Some(claim) if claim.by != *by => Err(claimed(now, claim)),
            Some(_) => {
                row.claim = None;
                done(row)
            }
            None => nothing(),
        },
        InterventionCommand::Assign { assignees, .. } if *assignees == seen.assignees => nothing(),
        InterventionCommand::Assign { assignees, .. } => {
            let new: Vec<&Name> = assignees.iter().filter(|to| !seen.assignees.contains(to)).collect();
            let told = seen.state == InterventionState::Pending;
            let number = u32::try_from(seen.version).unwrap_or(u32::MAX);
            let words = if told {
                new.into_iter().map(|to| Word::new(Message::Asked, to, number)).collect()
            } else {
                Vec::new()
            };
            row.assignees.clone_from(assignees);
            let (tell, closed, recorded) = (None, false, Recorded::Done);
            Ok(InterventionChange { row, tell, words, closed, recorded })
        }
        InterventionCommand::Snooze { by, ms } => {
            row.snoozed.retain(|other| other.by != *by && other.until > now);
            row.snoozed.push(Claim { by: by.clone(), until: now.plus_ms(*ms) });
            done(row)
        }
        InterventionCommand::Comment { by, text } => {
            if row.comments.len() >= COMMENTS_MAX {
                return Err(InterventionRejection::Unfit(format!(
                    "it has {COMMENTS_MAX} comments, the most that are kept"
                )));
            }
            row.comments.push(Comment { by: by.clone(), at: now, text: text.clone() });
            done(row)
        }
        InterventionCommand::Cancel { by, why } => {
            let why = format!("{by} took the question back: {why}");
            let tell = Tell::failure(QUESTION_CANCELLED, &why);
            Ok(InterventionChange { tell: Some(tell), ..cancelled(now, row, why) })
        }
        InterventionCommand::Drop { why } => Ok(cancelled(now, row, (*why).to_owned())),
    }
}

fn cancelled(now: Timestamp, mut row: Intervention, why: String) -> InterventionChange {
    let words = no_longer_needed(&row, None);
    row.state = InterventionState::Cancelled;
    row.closed_at = Some(now);
    row.cancelled = Some(why);
    InterventionChange { row, tell: None, words, closed: true, recorded: Recorded::Done }
}

/// Those who were told of it are told that it is over, but for the one who ended it.
pub fn no_longer_needed(row: &Intervention, by: Option<&Name>) -> Vec<Word> {
    // Nobody was told of one that is queued.
    if row.state != InterventionState::Pending {
        return Vec::new();
    }
    let others = row.assignees.iter().filter(|to| Some(*to) != by);
    others.map(|to| Word::new(Message::NoLongerNeeded, to, 0)).collect()
}

fn still_open(seen: &Intervention) -> Result<(), InterventionRejection> {
    if seen.state.is_open() {
        return Ok(());
    }
    let why = match (&seen.answered, &seen.cancelled) {
        (Some(answered), _) => answered.in_words(),
        (None, Some(why)) => why.clone(),
        (None, None) => seen.state.name().to_owned(),
    };
    Err(InterventionRejection::Closed { id: seen.key.id, why })
}

fn claimed(now: Timestamp, claim: &Claim) -> InterventionRejection {
    let since = ago(now, claim.until.plus_ms(-CLAIM_MS));
    InterventionRejection::Claimed { by: claim.by.clone(), since }
}

fn may_act(now: Timestamp, seen: &Intervention, by: &Name, force: bool) -> Result<(), InterventionRejection> {
    match seen.claimed(now) {
        Some(claim) if claim.by != *by && !force => Err(claimed(now, claim)),
        Some(_) | None => Ok(()),
    }
}

/// `groups`: those that the caller belongs to, as `group:NAME`.
fn answer(
    now: Timestamp,
    mut row: Intervention,
    groups: &[Name],
    answering: &Answering,
) -> Result<InterventionChange, InterventionRejection> {
    let Answering { by, answer, id, note, if_version, force } = answering;
    if let Some(named) = if_version.filter(|named| *named + 1 != row.version) {
        return Err(InterventionRejection::Stale { named, current: row.version - 1 });
    }
    if row.ask.four_eyes && *by == row.asker {
        return Err(InterventionRejection::FourEyes { by: by.clone() });
    }
    let is_asked = |name: &Name| name == by || groups.contains(name);
    let asked_first = row.ask.assignees.iter().chain(Some(&row.asker)).any(is_asked);
    let asked = row.assignees.is_empty() || row.assignees.iter().any(is_asked);
    if !asked && !force {
        let asked = row.assignees.iter().map(|name| &**name).collect::<Vec<_>>().join(", ");
        return Err(InterventionRejection::NotAsked { by: by.clone(), asked });
    }
    may_act(now, &row, by, *force)?;
    answer.fits(&row.ask).map_err(InterventionRejection::Unfit)?;
    let vote = Vote {
        by: by.clone(),
        at: now,
        id: id.clone(),
        answer: answer.clone(),
        note: note.clone(),
        forced: *force,
    };
    row.votes.retain(|other| other.by != *by);
    row.votes.push(vote);
    let (votes, of) = tally(&row, answer);
    if votes < of {
        let recorded = Recorded::Vote { votes, of };
        return Ok(InterventionChange { row, tell: None, words: Vec::new(), closed: false, recorded });
    }
    let source = match (asked, asked_first || row.level == 0) {
        (false, _) => Source::Operator,
        (true, true) => Source::User,
        (true, false) => Source::Escalation,
    };
    let (answer, note) = (Some(answer.clone()), note.clone());
    let answered = Answered { by: by.clone(), source, at: now, answer, note };
    let words = no_longer_needed(&row, Some(by));
    let tell = Tell::answer(row.key.id, &row.ask.arguments_hash, &answered);
    row.state = InterventionState::Responded;
    row.closed_at = Some(now);
    row.answered = Some(answered);
    Ok(InterventionChange { row, tell, words, closed: true, recorded: Recorded::Decided })
}

/// How many votes of this kind there are, and how many decide.
fn tally(row: &Intervention, answer: &Answer) -> (u16, u16) {
    let is_yes = |answer: &Answer| matches!(answer, Answer::Approved { .. });
    if row.ask.kind != InterventionType::Approval {
        return (1, 1);
    }
    let same = row.votes.iter().filter(|vote| is_yes(&vote.answer) == is_yes(answer)).count();
    let of = if is_yes(answer) { row.ask.quorum.approve } else { row.ask.quorum.reject };
    (u16::try_from(same).unwrap_or(u16::MAX), of)
}
