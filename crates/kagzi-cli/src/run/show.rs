use super::find;
use super::step::{self, StepView};
use super::view::RunView;
use crate::output::{self, Format};
use crate::session::Session;
use crate::time_text;
use serde::Serialize;

/// Enough for a screen and a script; `run steps` has everything.
const STEPS_MAX: u16 = 200;

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
    let client = session.client().await?;
    let run = find::run(&client, &args.id).await?;
    let attempts = client.handle(&run.run_id).attempts().page_size(STEPS_MAX).page("").await?;
    let steps = attempts.rows.into_iter().map(StepView::from).collect();
    let shown = Shown { run: run.into(), steps };

    match session.format {
        Format::Json => output::print_json(&shown)?,
        Format::Table => output::print(&text(&shown))?,
    }
    if attempts.next.is_some() {
        output::note(&format!(
            "only the first {STEPS_MAX} step attempts are shown; all of them: kagzi run steps {}",
            args.id
        ));
    }
    Ok(())
}

fn text(shown: &Shown) -> String {
    let now = time_text::now();
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
