//! The ladder: from any state it ends, its rungs only rise, and replans and episodes are bounded.

use kagzi_model::{
    Alternative, Class, Failure, Finality, HandlingRule, Name, Rules, Ruling, Rung, Timestamp, Verdict,
    ladder::{Applicable, Climb, Failed, Next, climb},
    limits::{EPISODES_MAX, REPLAN_WINDOW_MS, REPLANS_MAX},
    rule_on,
};
use proptest::prelude::*;

const MINUTE: i64 = 60_000;
const AGAIN: Verdict = Verdict::RetryAfter { delay_ms: 1_000 };
const USED_UP: Verdict = Verdict::Final(Finality::Exhausted);

fn at(ms: i64) -> Timestamp {
    Timestamp(ms * 1_000)
}

/// Everything can be done; tests take away what they are about.
fn everything(alternatives: &[Alternative]) -> Applicable<'_> {
    Applicable {
        now: at(0),
        alternatives,
        liked: &[],
        planner: false,
        ask: true,
        undo_owed: true,
        escalate: true,
        patience_ms: 2 * MINUTE,
    }
}

fn ruled(code: &str, first: Rung) -> Ruling {
    let rules = [HandlingRule { code: Some(code.into()), first: Some(first), ..HandlingRule::default() }];
    rule_on(None, &Failure::new(code, ""), &Rules { step: &rules, ..Rules::default() })
}

fn failed(code: &str, verdict: Verdict) -> Failed<'_> {
    Failed { code, retry_after_ms: None, verdict }
}

/// All that happens until somebody else has to act, with the same failure again and again.
fn all_the_way(mut state: Climb, ruling: &Ruling, failed: &Failed<'_>, can: &Applicable<'_>) -> Vec<Next> {
    let mut done = Vec::new();
    loop {
        let next = climb(&state, ruling, failed, can);
        state = state.after(can.now, &next);
        let is_over = matches!(next, Next::Function);
        done.push(next);
        if is_over {
            return done;
        }
        assert!(done.len() < 100, "it goes on for ever: {done:?}");
    }
}

fn rungs(done: &[Next]) -> Vec<Rung> {
    done.iter().filter_map(Next::rung).collect()
}

#[test]
fn a_failure_climbs_every_rung_once_and_then_goes_to_the_function() {
    let others = [Alternative::new("other", &["busy"])];
    let ruling = ruled("busy", Rung::Retry);
    let done = all_the_way(Climb::default(), &ruling, &failed("busy", USED_UP), &everything(&others));

    assert_eq!(rungs(&done), [Rung::Replan, Rung::AskUser, Rung::Rollback, Rung::Escalate]);
    assert_eq!(done.last(), Some(&Next::Function));
}

#[test]
fn retries_stay_on_their_rung_and_carry_what_is_done_before_them() {
    let ruling = rule_on(
        Some("browser_action"),
        &Failure::new("element_not_found", ""),
        &Rules { ..Rules::default() },
    );
    let can = everything(&[]);
    let once = climb(&Climb::default(), &ruling, &failed("element_not_found", AGAIN), &can);
    let twice = Climb::default().after(can.now, &once);

    assert_eq!(once, Next::Retry { delay_ms: 1_000, before: Some("refresh_page".into()) });
    assert_eq!(climb(&twice, &ruling, &failed("element_not_found", AGAIN), &can), once);
    assert_eq!(climb(&twice, &ruling, &failed("element_not_found", USED_UP), &can), Next::Ask);
}

#[test]
fn a_rung_that_cannot_be_used_is_passed_over() {
    let ruling = ruled("busy", Rung::Replan);
    let can = |ask, undo_owed, escalate| Applicable { ask, undo_owed, escalate, ..everything(&[]) };
    let next = |can: Applicable<'_>| climb(&Climb::default(), &ruling, &failed("busy", AGAIN), &can);

    assert_eq!(next(can(true, true, true)), Next::Ask);
    assert_eq!(next(can(false, true, true)), Next::Rollback);
    assert_eq!(next(can(false, false, true)), Next::Escalate);
    assert_eq!(next(can(false, false, false)), Next::Function);
    assert_eq!(next(Applicable { planner: true, ..can(true, true, true) }), Next::PlanByPlanner);
}

#[test]
fn a_catastrophe_starts_at_the_incident_whatever_else_could_be_done() {
    let ruling = rule_on(None, &Failure::new("disk_full", ""), &Rules::default());
    let others = [Alternative::new("other", &["disk_full"])];

    assert_eq!(ruling.class.value, Class::Catastrophic);
    let next = climb(&Climb::default(), &ruling, &failed("disk_full", AGAIN), &everything(&others));
    assert_eq!(next, Next::Escalate);
}

#[test]
fn an_interface_comes_before_a_person_and_after_a_retry() {
    let others = [Alternative::new("api", &["captcha_detected", "rate_limited"])];
    let can = everything(&others);
    let captcha = rule_on(Some("browser_action"), &Failure::new("captcha_detected", ""), &Rules::default());
    let limited = rule_on(Some("web_search"), &Failure::new("rate_limited", ""), &Rules::default());
    let planner = Applicable { planner: true, ..everything(&[]) };
    let first = Climb::default();

    let next = climb(&first, &captcha, &failed("captcha_detected", AGAIN), &can);
    assert!(matches!(next, Next::Replan { .. }), "{next:?}");
    assert_eq!(climb(&first, &captcha, &failed("captcha_detected", AGAIN), &planner), Next::Ask);
    let next = climb(&first, &limited, &failed("rate_limited", AGAIN), &can);
    assert!(matches!(next, Next::Retry { .. }), "{next:?}");
    let next = climb(&first, &limited, &failed("rate_limited", USED_UP), &can);
    assert!(matches!(next, Next::Replan { .. }), "{next:?}");
}

#[test]
fn a_receiver_that_wants_a_long_rest_is_passed_by_where_there_is_another_way() {
    let others = [Alternative::new("other", &["rate_limited"])];
    let ruling = rule_on(None, &Failure::new("rate_limited", ""), &Rules::default());
    let asked = |ms| Failed { retry_after_ms: Some(ms), ..failed("rate_limited", AGAIN) };
    let next = |failed: Failed<'_>, can: Applicable<'_>| climb(&Climb::default(), &ruling, &failed, &can);

    assert!(matches!(next(asked(2 * MINUTE), everything(&others)), Next::Retry { .. }));
    assert!(matches!(next(asked(2 * MINUTE + 1), everything(&others)), Next::Replan { .. }));
    assert!(matches!(next(asked(60 * MINUTE), everything(&[])), Next::Retry { .. }));
}

#[test]
fn the_best_untried_way_comes_first_and_three_within_five_minutes_are_enough() {
    let others: Vec<Alternative> = [0.2, 0.9, 0.5, 0.7, 0.3]
        .into_iter()
        .map(|rated| Alternative::new(&format!("r{rated}"), &["busy"]).rated(rated, 1.0, 1.0))
        .collect();
    let ruling = ruled("busy", Rung::Replan);
    let can = everything(&others);
    let done = all_the_way(Climb::default(), &ruling, &failed("busy", AGAIN), &can);
    let plans: Vec<&str> = done
        .iter()
        .filter_map(|next| if let Next::Replan { plan, .. } = next { Some(&**plan) } else { None })
        .collect();
    assert_eq!(plans, ["r0.9", "r0.7", "r0.5"]);

    let first = climb(&Climb::default(), &ruling, &failed("busy", AGAIN), &can);
    let state = Climb::default().after(can.now, &first);
    let then = |ms| climb(&state, &ruling, &failed("busy", AGAIN), &Applicable { now: at(ms), ..can });
    assert!(matches!(then(REPLAN_WINDOW_MS), Next::Replan { .. }));
    assert_eq!(then(REPLAN_WINDOW_MS + 1), Next::Ask);
    let liked = [(Name::from("r0.5"), 1.0), (Name::from("r0.7"), 0.0)];
    let liking = Applicable { liked: &liked, ..everything(&others[2..4]) };
    let next = climb(&Climb::default(), &ruling, &failed("busy", AGAIN), &liking);
    assert!(matches!(&next, Next::Replan { plan, .. } if &**plan == "r0.5"), "{next:?}");
}

#[test]
fn a_person_lets_it_climb_again_twice_and_no_more() {
    let mut state = Climb { entered: 31, replans: 3, tried: vec!["x".into()], ..Climb::default() };
    for episode in 2..=EPISODES_MAX {
        state = state.again().expect("it may climb again");
        assert_eq!(state, Climb { episode, ..Climb::default() });
    }
    assert_eq!(state.again(), None);
}

fn any_rung() -> impl Strategy<Value = Rung> {
    prop::sample::select(Rung::ALL.to_vec())
}

fn any_alternative() -> impl Strategy<Value = Alternative> {
    // Any bits at all, numbers that are none included: a score has to be total.
    ("[a-e]", "[xy]", any::<f64>(), any::<f64>(), any::<f64>(), any::<Option<f64>>()).prop_map(
        |(name, code, reliability, cost, latency, capability)| Alternative {
            capability,
            ..Alternative::new(&name, &[&code]).rated(reliability, cost, latency)
        },
    )
}

fn any_state() -> impl Strategy<Value = Climb> {
    let tried = prop::collection::vec("[a-e]".prop_map(Name::from), 0..4);
    (1..=EPISODES_MAX, 0..32u8, tried, 0..=4u8, prop::option::of(-600_000..600_000i32)).prop_map(
        |(episode, entered, tried, replans, ms)| Climb {
            episode,
            entered,
            plan: tried.last().cloned(),
            tried,
            replans,
            replanned_at: ms.map(|ms| at(ms.into())),
        },
    )
}

/// A failure of each attempt: another code, another first rung, another word of the policy, some time later.
fn any_failure() -> impl Strategy<Value = (Rung, bool, bool, i64, Option<i64>)> {
    let asked = prop::option::of(0..10 * MINUTE);
    (any_rung(), any::<bool>(), any::<bool>(), 0..3 * MINUTE, asked)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn from_any_state_it_ends_within_five_rungs_that_only_rise(
        state in any_state(),
        alternatives in prop::collection::vec(any_alternative(), 0..6),
        failures in prop::collection::vec(any_failure(), 60),
        (planner, ask, undo_owed, escalate) in any::<(bool, bool, bool, bool)>(),
    ) {
        let mut state = state;
        let (mut height, mut rungs_entered, mut now) = (state.entered, 0, 0);
        let replans_before = state.replans;
        for (first, is_x, granted, wait, retry_after_ms) in failures {
            now += wait;
            let code = if is_x { "x" } else { "y" };
            let can = Applicable {
                now: at(now), planner, ask, undo_owed, escalate, ..everything(&alternatives)
            };
            // A policy allows only so many attempts: after twenty it says no.
            let verdict = if granted && rungs_entered < 20 { AGAIN } else { USED_UP };
            let failed = Failed { code, retry_after_ms, verdict };
            let next = climb(&state, &ruled(code, first), &failed, &can);
            let Some(rung) = next.rung() else { break };
            let is_new = state.entered & rung.number() == 0;
            prop_assert!(rung.number() >= highest(state.entered), "{:?} after {:05b}", next, state.entered);
            let may_stay = matches!(rung, Rung::Retry | Rung::Replan);
            prop_assert!(is_new || may_stay, "{:?} was entered before", rung);
            if is_new {
                rungs_entered += 1;
            }
            if rung == Rung::Replan {
                let first = state.replanned_at.map_or(now, |first| first.0 / 1_000);
                prop_assert!(now - first <= REPLAN_WINDOW_MS, "the first was {} ms ago", now - first);
            }
            if let Next::Replan { plan, score } = &next {
                prop_assert!((0.0..=100.0).contains(score), "{score}");
                prop_assert!(!state.tried.contains(plan), "{plan} was tried");
            }
            let after = state.after(at(now), &next);
            prop_assert_eq!(after.entered & state.entered, state.entered, "bits are only gained");
            prop_assert!(after.entered >= height);
            height = after.entered;
            state = after;
        }
        prop_assert!(rungs_entered <= 5, "{rungs_entered} rungs");
        prop_assert!(state.replans <= REPLANS_MAX.max(replans_before));
    }

    #[test]
    fn the_same_failure_for_ever_ends_at_the_function(
        state in any_state(),
        first in any_rung(),
        alternatives in prop::collection::vec(any_alternative(), 0..6),
        (planner, ask, undo_owed, escalate) in any::<(bool, bool, bool, bool)>(),
    ) {
        let can = Applicable { planner, ask, undo_owed, escalate, ..everything(&alternatives) };
        let done = all_the_way(state, &ruled("x", first), &failed("x", USED_UP), &can);
        let mut entered = rungs(&done);
        entered.dedup();
        prop_assert!(entered.len() <= 5 && entered.is_sorted(), "{entered:?}");
        prop_assert!(rungs(&done).iter().filter(|rung| **rung == Rung::Replan).count() <= 3);
    }

    #[test]
    fn scores_are_between_zero_and_a_hundred_and_sort_without_a_tie(
        list in prop::collection::vec(any_alternative(), 0..6),
    ) {
        for one in &list {
            prop_assert!((0.0..=100.0).contains(&one.score(None)), "{one:?}");
            prop_assert!((0.0..=100.0).contains(&one.score(Some(f64::NAN))));
        }
    }
}

fn highest(bits: u8) -> u8 {
    bits.checked_ilog2().map_or(0, |bit| 1 << bit)
}
