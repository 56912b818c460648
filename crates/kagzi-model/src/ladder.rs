//! The ladder: retry, replan, ask a person, roll back, escalate. One pure function says what follows a failed
//! attempt; a byte per failed step remembers which rungs were entered, and they only rise.

use serde::{Deserialize, Serialize};

use crate::{
    Millis, Name, Ruling, Rung, Timestamp, Verdict,
    alternative::{Alternative, better},
    limits::{EPISODES_MAX, REPLAN_WINDOW_MS, REPLANS_MAX},
};

/// How far a step's failure has climbed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Climb {
    /// From 1. A person who says "again" begins the next one.
    pub episode: u8,
    /// The rungs that were entered in this episode, as bits.
    pub entered: u8,
    /// The other way that the step takes now.
    pub plan: Option<Name>,
    /// Other ways that this episode has taken.
    pub tried: Vec<Name>,
    pub replans: u8,
    /// When this episode took another way for the first time.
    pub replanned_at: Option<Timestamp>,
}

/// What the step and its namespace allow.
#[derive(Debug, Clone, Copy)]
pub struct Applicable<'a> {
    pub now: Timestamp,
    pub alternatives: &'a [Alternative],
    /// How a person likes the alternatives, over what the step says.
    pub liked: &'a [(Name, f64)],
    /// A planner may think of another way.
    pub planner: bool,
    /// Somebody is there to be asked.
    pub ask: bool,
    /// A step that has run can be undone.
    pub undo_owed: bool,
    /// Incidents are wanted.
    pub escalate: bool,
    /// A receiver that wants to be left alone for longer is passed by, where there is another way.
    pub patience_ms: Millis,
}

/// What is known of the failed attempt beside its ruling.
#[derive(Debug, Clone, Copy)]
pub struct Failed<'a> {
    pub code: &'a str,
    /// How long the receiver wants to be left alone.
    pub retry_after_ms: Option<Millis>,
    /// What the policy says about one more attempt.
    pub verdict: Verdict,
}

/// What follows.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    Retry {
        delay_ms: Millis,
        before: Option<Name>,
    },
    Replan {
        plan: Name,
        score: f64,
    },
    PlanByPlanner,
    Ask,
    Rollback,
    Escalate,
    /// Nobody above: the error goes to the function that called the step.
    Function,
}

impl Next {
    /// The rung that it stands on.
    pub fn rung(&self) -> Option<Rung> {
        match self {
            Next::Retry { .. } => Some(Rung::Retry),
            Next::Replan { .. } | Next::PlanByPlanner => Some(Rung::Replan),
            Next::Ask => Some(Rung::AskUser),
            Next::Rollback => Some(Rung::Rollback),
            Next::Escalate => Some(Rung::Escalate),
            Next::Function => None,
        }
    }
}

impl Default for Climb {
    fn default() -> Self {
        Climb { episode: 1, entered: 0, plan: None, tried: Vec::new(), replans: 0, replanned_at: None }
    }
}

impl Climb {
    /// The highest rung that was entered, as a bit; 0 = none.
    fn height(&self) -> u8 {
        let highest = self.entered.checked_ilog2();
        highest.map_or(0, |bit| 1 << bit)
    }

    /// The climb after `next` was done. Retries and replans stay on the rung they have entered.
    pub fn after(&self, now: Timestamp, next: &Next) -> Climb {
        let mut climb = self.clone();
        climb.entered |= next.rung().map_or(0, Rung::number);
        match next {
            Next::Replan { plan, .. } => {
                climb.tried.push(plan.clone());
                climb.plan = Some(plan.clone());
            }
            // Its name is known when the planner has answered.
            Next::PlanByPlanner => climb.plan = None,
            Next::Retry { .. } | Next::Ask | Next::Rollback | Next::Escalate | Next::Function => {}
        }
        if matches!(next, Next::Replan { .. } | Next::PlanByPlanner) {
            climb.replans = climb.replans.saturating_add(1);
            climb.replanned_at.get_or_insert(now);
        }
        climb
    }

    /// The climb after a person said "again", if that may still be offered.
    pub fn again(&self) -> Option<Climb> {
        (self.episode < EPISODES_MAX).then(|| Climb { episode: self.episode + 1, ..Climb::default() })
    }

    fn may_replan(&self, now: Timestamp) -> bool {
        let in_time = self.replanned_at.is_none_or(|first| now.remaining_ms(first) <= REPLAN_WINDOW_MS);
        self.replans < REPLANS_MAX && in_time
    }
}

/// What follows a failed attempt: the ruling's first rung, or the lowest above every entered one that can be
/// used. The other ways for this very code come before a person is asked, and before a long wait.
pub fn climb(climb: &Climb, ruling: &Ruling, failed: &Failed<'_>, can: &Applicable<'_>) -> Next {
    let (first, height) = (ruling.first.value, climb.height());
    let other_way = climb.may_replan(can.now).then(|| best(climb, ruling, failed.code, can)).flatten();
    let granted = match failed.verdict {
        Verdict::RetryAfter { delay_ms } if ruling.retries => Some(delay_ms),
        Verdict::RetryAfter { .. } | Verdict::Final(_) => None,
    };
    let may_stand_on = |rung: Rung| first <= rung && height <= rung.number();
    if let Some(delay_ms) = granted.filter(|_| may_stand_on(Rung::Retry)) {
        let too_long = failed.retry_after_ms.is_some_and(|asked_ms| asked_ms > can.patience_ms);
        return match other_way {
            Some((plan, score)) if too_long => Next::Replan { plan, score },
            Some(_) | None => {
                Next::Retry { delay_ms, before: ruling.before_retry.as_ref().map(|said| said.value.clone()) }
            }
        };
    }
    let before_a_person = first == Rung::AskUser && height <= Rung::Replan.number();
    if may_stand_on(Rung::Replan) || before_a_person {
        if let Some((plan, score)) = other_way {
            return Next::Replan { plan, score };
        }
        if can.planner && may_stand_on(Rung::Replan) && climb.may_replan(can.now) {
            return Next::PlanByPlanner;
        }
    }
    let is_above = |rung: Rung| first <= rung && height < rung.number();
    if can.ask && is_above(Rung::AskUser) {
        return Next::Ask;
    }
    if can.undo_owed && is_above(Rung::Rollback) {
        return Next::Rollback;
    }
    if can.escalate && is_above(Rung::Escalate) { Next::Escalate } else { Next::Function }
}

/// The best way that was not tried and helps against this failure.
fn best(climb: &Climb, ruling: &Ruling, code: &str, can: &Applicable<'_>) -> Option<(Name, f64)> {
    let hint = ruling.hint.as_ref().map(|said| &*said.value);
    let untried = can.alternatives.iter().filter(|one| !climb.tried.contains(&one.name));
    let liked = |name: &Name| can.liked.iter().find(|(other, _)| other == name).map(|(_, much)| *much);
    untried
        .filter(|one| one.helps(code, hint))
        .map(|one| (one, one.score(liked(&one.name))))
        .min_by(|one, other| better(*one, *other))
        .map(|(one, score)| (one.name.clone(), score))
}
