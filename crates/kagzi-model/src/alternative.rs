//! Other ways to a step's result: what they are good for, and which is tried first.

use std::cmp::Ordering;

use kagzi_catalogue::handling::known_codes::meant;
use serde::{Deserialize, Serialize};

use crate::{
    Name, RunId,
    backoff::seed,
    check_name,
    limits::{ALTERNATIVE_CODES_MAX, ALTERNATIVES_MAX},
};

/// Another way to a step's result. Its code lives in the worker; here is what is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    pub name: Name,
    /// The codes it helps against, or hints that mean them.
    pub for_codes: Vec<Name>,
    /// How often it works, 0 to 1.
    pub reliability: f64,
    /// What it costs beside the first way: 1 = the same.
    pub cost: f64,
    /// How long it takes beside the first way: 1 = the same.
    pub latency: f64,
    /// How much of the job it can do, 0 to 1; everything unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<f64>,
    /// How much it is liked, 0 to 1; half unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preference: Option<f64>,
    /// Among equals the lower one is first.
    #[serde(default)]
    pub place: u32,
}

/// An alternative that makes no sense: which, which field, its value, and what to write instead.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("alternative '{name}', {field} is {value}: {next}")]
pub struct AlternativeError {
    pub name: String,
    pub field: &'static str,
    pub value: String,
    pub next: &'static str,
}

/// How providers of the same thing are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Each run begins with another one, so that all share the load.
    RoundRobin,
    /// Always in the order of the list.
    Failover,
}

impl Alternative {
    /// One that is as good, as dear and as fast as the first way.
    pub fn new(name: &str, for_codes: &[&str]) -> Alternative {
        Alternative {
            name: name.into(),
            for_codes: for_codes.iter().map(|code| Name::from(*code)).collect(),
            reliability: 1.0,
            cost: 1.0,
            latency: 1.0,
            capability: None,
            preference: None,
            place: 0,
        }
    }

    /// One alternative for each provider. With round robin the list is rotated by run and step, so that no
    /// server has to remember whose turn it is.
    pub fn providers(
        providers: &[&str],
        for_codes: &[&str],
        selection: Selection,
        (run, step): (RunId, &str),
    ) -> Vec<Alternative> {
        let len = providers.len().max(1) as u64;
        let turn = match selection {
            Selection::RoundRobin => seed(&[run.0.as_bytes(), step.as_bytes()]) % len,
            Selection::Failover => 0,
        };
        let placed = (0..len).cycle().skip((len - turn) as usize).zip(providers);
        let place = |place: u64| u32::try_from(place).unwrap_or(u32::MAX);
        let named = |(at, provider): (u64, &&str)| Alternative {
            place: place(at),
            ..Alternative::new(&format!("provider:{provider}"), for_codes)
        };
        placed.map(named).collect()
    }

    /// The alternative with these figures.
    pub fn rated(mut self, reliability: f64, cost: f64, latency: f64) -> Alternative {
        (self.reliability, self.cost, self.latency) = (reliability, cost, latency);
        self
    }

    /// Whether it helps against a failure with this code, or with what another way would have to do.
    pub fn helps(&self, code: &str, hint: Option<&str>) -> bool {
        let wanted = [Some(code), hint].map(|word| word.map(meant));
        self.for_codes.iter().any(|word| wanted.contains(&Some(meant(word))))
    }

    /// 0 to 100, whatever the figures are: 30 for reliability, 20 for cost, 15 for latency, 25 for what it
    /// can do and 10 for how it is liked. A figure that is no number counts as the worst.
    pub fn score(&self, liked: Option<f64>) -> f64 {
        let share = |value: f64| if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) };
        // Twice the price of the first way and more is worth nothing.
        let thrift = |value: f64| 1.0 - if value.is_nan() { 1.0 } else { (value / 2.0).clamp(0.0, 1.0) };
        30.0 * share(self.reliability)
            + 20.0 * thrift(self.cost)
            + 15.0 * thrift(self.latency)
            + 25.0 * share(self.capability.unwrap_or(1.0))
            + 10.0 * share(liked.or(self.preference).unwrap_or(0.5))
    }

    /// Refuses figures that mean nothing.
    pub fn check(&self) -> Result<(), AlternativeError> {
        let wrong = |field, value: String, next| {
            Err(AlternativeError { name: self.name.to_string(), field, value, next })
        };
        if check_name(&self.name).is_err() {
            return wrong("name", format!("{:?}", &*self.name), "give it a name that can be read in a list");
        }
        if self.for_codes.is_empty() || self.for_codes.len() > ALTERNATIVE_CODES_MAX {
            let next = "name 1 to 100 codes that it helps against";
            return wrong("for_codes", format!("{} long", self.for_codes.len()), next);
        }
        if let Some(code) = self.for_codes.iter().find(|code| check_name(code).is_err()) {
            return wrong("for_codes", format!("{:?}", &**code), "write a code, e.g. rate_limited");
        }
        for (field, value) in [
            ("reliability", Some(self.reliability)),
            ("capability", self.capability),
            ("preference", self.preference),
        ] {
            if let Some(value) = value
                && !(0.0..=1.0).contains(&value)
            {
                return wrong(field, value.to_string(), "write a number from 0 to 1");
            }
        }
        for (field, value) in [("cost", self.cost), ("latency", self.latency)] {
            if !(0.0..=1_000_000.0).contains(&value) {
                return wrong(field, value.to_string(), "write a number from 0 up; 1 = as the first way");
            }
        }
        Ok(())
    }
}

/// Refuses a list that is too long, has a name twice or has one that makes no sense.
pub fn check_alternatives(list: &[Alternative]) -> Result<(), AlternativeError> {
    if list.len() > ALTERNATIVES_MAX {
        let (name, value) = (String::new(), format!("{} long", list.len()));
        return Err(AlternativeError { name, field: "list", value, next: "keep at most 20 for one step" });
    }
    for (at, one) in list.iter().enumerate() {
        one.check()?;
        if list[..at].iter().any(|other| other.name == one.name) {
            let value = format!("'{}', for the second time", one.name);
            let next = "give each its own name: histories tell them apart by it";
            return Err(AlternativeError { name: one.name.to_string(), field: "name", value, next });
        }
    }
    Ok(())
}

/// Which of two is tried first: the better one, then the earlier in its list, then by name. A total order.
pub fn better(one: (&Alternative, f64), other: (&Alternative, f64)) -> Ordering {
    other.1.total_cmp(&one.1).then(one.0.place.cmp(&other.0.place)).then(one.0.name.cmp(&other.0.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(mut list: Vec<Alternative>) -> Vec<String> {
        list.sort_by(|a, b| better((a, a.score(None)), (b, b.score(None))));
        list.into_iter().map(|one| one.name.to_string()).collect()
    }

    #[test]
    fn the_seeds_own_figures_have_scores_above_zero() {
        let fallback = Alternative::new("provider:x", &["rate_limited"]).rated(0.95, 1.2, 1.1);
        let shorter = Alternative::new("shorter", &["context_length_exceeded"]).rated(0.9, 1.5, 1.3);
        let api = Alternative::new("api", &["captcha_detected"]).rated(0.99, 0.8, 0.5);

        assert!((fallback.score(None) - 73.25).abs() < 1e-9, "{}", fallback.score(None));
        assert!((shorter.score(None) - 67.25).abs() < 1e-9, "{}", shorter.score(None));
        assert!((api.score(None) - 82.95).abs() < 1e-9, "{}", api.score(None));
    }

    #[test]
    fn what_a_person_likes_counts_more_than_what_the_step_says() {
        let liked = Alternative { preference: Some(0.0), ..Alternative::new("a", &["X"]) };
        assert!((liked.score(Some(1.0)) - liked.score(None) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn failover_keeps_the_order_of_the_list_and_round_robin_rotates_it_by_run() {
        let step = (RunId(uuid::Uuid::from_u128(1)), "ask");
        let fail_over =
            Alternative::providers(&["google", "bing", "duck"], &["rate_limited"], Selection::Failover, step);
        assert_eq!(names(fail_over), ["provider:google", "provider:bing", "provider:duck"]);

        let firsts: std::collections::BTreeSet<String> = (0..100)
            .map(|run| {
                let step = (RunId(uuid::Uuid::from_u128(run)), "ask");
                let list = Alternative::providers(&["a", "b", "c"], &["X"], Selection::RoundRobin, step);
                let order = names(list);
                let rotations = ["abc", "bca", "cab"].map(|word| word.replace("", " "));
                let seen: String = order.iter().map(|name| &name["provider:".len()..]).collect();
                assert!(rotations.iter().any(|turn| turn.replace(' ', "") == seen), "{seen}");
                order[0].clone()
            })
            .collect();
        assert_eq!(firsts.len(), 3, "every provider is the first of some runs");
        assert!(Alternative::providers(&[], &["X"], Selection::RoundRobin, step).is_empty());
    }

    #[test]
    fn a_hint_and_its_code_are_one_word() {
        let small = Alternative::new("small", &["use_fallback_model"]);
        assert!(small.helps("model_unavailable", None));
        assert!(small.helps("http_500", Some("use_fallback_model")));
        assert!(!small.helps("rate_limited", None));
        assert!(!small.helps("rate_limited", Some("refresh_credentials")));
    }

    #[test]
    fn nonsense_is_refused_with_name_field_value_and_what_to_do() {
        let fine = || Alternative::new("a", &["X"]);
        let wrong = [
            (fine().rated(f64::NAN, 1.0, 1.0), "reliability"),
            (fine().rated(1.1, 1.0, 1.0), "reliability"),
            (fine().rated(1.0, -0.1, 1.0), "cost"),
            (fine().rated(1.0, f64::INFINITY, 1.0), "cost"),
            (fine().rated(1.0, 1.0, f64::NAN), "latency"),
            (Alternative { capability: Some(2.0), ..fine() }, "capability"),
            (Alternative { preference: Some(f64::NAN), ..fine() }, "preference"),
            (Alternative::new("", &["X"]), "name"),
            (Alternative::new("a", &[]), "for_codes"),
            (Alternative::new("a", &[""]), "for_codes"),
        ];
        for (one, field) in wrong {
            assert_eq!(one.check().map_err(|error| error.field), Err(field));
        }
        assert_eq!(check_alternatives(&[fine(), fine()]).map_err(|error| error.field), Err("name"));
        let many: Vec<_> = (0..21).map(|n| Alternative::new(&n.to_string(), &["X"])).collect();
        assert_eq!(check_alternatives(&many[..20]), Ok(()));
        assert_eq!(check_alternatives(&many).map_err(|error| error.field), Err("list"));
    }
}
