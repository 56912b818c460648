use super::find;
use super::step::{self, StepView};
use super::view::RunView;
use crate::moment;
use crate::output::{self, Format};
use crate::session::Session;
use kagzi_proto::v1::ListStepAttemptsRequest;
use serde::Serialize;

/// Enough for a screen and a script; `run steps` has everything.
const STEPS_MAX: i32 = 200;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    run: RunView,
    steps: Vec<StepView>,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut workflows = session.workflows().await?;
    let run = find::run(&mut workflows, session, &args.id).await?;
    let request = ListStepAttemptsRequest {
        run_id: run.run_id.clone(),
        namespace_id: session.namespace.clone(),
        page_size: STEPS_MAX,
        ..ListStepAttemptsRequest::default()
    };
    let attempts = workflows.list_step_attempts(request).await?.into_inner();
    let steps = attempts.step_attempts.into_iter().map(StepView::from).collect();
    let shown = Shown { run: run.into(), steps };

    match session.format {
        Format::Json => output::print_json(&shown)?,
        Format::Table => output::print(&text(&shown))?,
    }
    if !attempts.next_page_token.is_empty() {
        output::note(&format!(
            "only the first {STEPS_MAX} step attempts are shown; all of them: kagzi run steps {}",
            args.id
        ));
    }
    Ok(())
}

fn text(shown: &Shown) -> String {
    let now = moment::now();
    let run = shown.run.fields(now);
    match shown.steps.as_slice() {
        [] => run,
        steps => format!("{run}\n\n{}", step::as_table(steps, now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::step::tests::sample_steps;
    use crate::run::view::tests::sample_run;

    #[test]
    fn a_run_with_its_steps_as_json() {
        let shown = Shown { run: sample_run().into(), steps: sample_steps() };

        insta::assert_snapshot!(output::json(&shown));
    }
}
