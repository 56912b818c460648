use crate::table::Mood;
use kagzi_proto::v1::WorkflowStatus;

/// The word for a status, as everywhere in Kagzi: `RUNNING`.
pub fn word(status: WorkflowStatus) -> &'static str {
    let name = status.as_str_name();
    name.strip_prefix("WORKFLOW_STATUS_").unwrap_or(name)
}

pub fn parse(text: &str) -> Result<WorkflowStatus, String> {
    let wanted = text.to_uppercase().replace('-', "_");
    WorkflowStatus::from_str_name(&format!("WORKFLOW_STATUS_{wanted}"))
        .filter(|status| *status != WorkflowStatus::Unspecified)
        .ok_or_else(|| {
            "expected pending, running, sleeping, completed, failed, cancelled, timed_out, paused or compensating".into()
        })
}

pub fn mood(status: WorkflowStatus) -> Mood {
    match status {
        WorkflowStatus::Completed => Mood::Good,
        WorkflowStatus::Failed | WorkflowStatus::TimedOut | WorkflowStatus::Paused => Mood::Bad,
        WorkflowStatus::Running | WorkflowStatus::Compensating => Mood::Busy,
        WorkflowStatus::Unspecified
        | WorkflowStatus::Pending
        | WorkflowStatus::Sleeping
        | WorkflowStatus::Cancelled => Mood::Idle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_parsed_from_the_word_that_is_shown() {
        for number in 1..=9 {
            let status = WorkflowStatus::try_from(number).unwrap();
            assert_eq!(parse(word(status)), Ok(status));
            assert_eq!(parse(&word(status).to_lowercase()), Ok(status));
        }
    }

    #[test]
    fn an_unknown_status_is_refused_with_the_list_of_known_ones() {
        assert!(parse("asleep").unwrap_err().contains("sleeping"));
        assert!(parse("unspecified").is_err());
    }
}
