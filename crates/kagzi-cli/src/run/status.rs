use crate::table::Mood;
use kagzi::client::RunStatus;

pub fn parse(text: &str) -> Result<RunStatus, String> {
    let wanted = text.to_uppercase().replace('-', "_");
    RunStatus::ALL.into_iter().find(|status| status.name() == wanted).ok_or_else(|| {
        let known: Vec<_> = RunStatus::ALL.iter().map(|status| status.name().to_lowercase()).collect();
        format!("expected one of {}", known.join(", "))
    })
}

pub fn mood(status: RunStatus) -> Mood {
    match status {
        RunStatus::Completed => Mood::Good,
        RunStatus::Failed | RunStatus::TimedOut | RunStatus::Paused => Mood::Bad,
        RunStatus::Running | RunStatus::Compensating => Mood::Busy,
        // The SDK may learn of others; none of them is good or bad yet.
        _ => Mood::Idle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_parsed_from_the_word_that_is_shown() {
        for status in RunStatus::ALL {
            assert_eq!(parse(status.name()), Ok(status));
            assert_eq!(parse(&status.name().to_lowercase()), Ok(status));
        }
    }

    #[test]
    fn an_unknown_status_is_refused_with_the_list_of_known_ones() {
        assert!(parse("asleep").unwrap_err().contains("sleeping"));
        assert!(parse("unspecified").is_err());
    }
}
