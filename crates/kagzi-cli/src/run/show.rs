use super::find;
use super::pending::PendingView;
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
    /// None where the history is too long to be read for it.
    #[serde(flatten)]
    pending: Option<PendingView>,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let client = session.client().await?;
    let run = find::run(&client, &args.id).await?;
    let handle = client.handle(&run.run_id);
    let attempts = handle.attempts().page_size(STEPS_MAX).page("").await?;
    let pending = PendingView::of(&run, &handle).await?;
    let steps = attempts.rows.into_iter().map(StepView::from).collect();
    let shown = Shown { run: run.into(), steps, pending };

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
    if shown.pending.is_none() {
        output::note(&format!(
            "its history is too long to say here what it waits for and has not read: kagzi run why {}",
            args.id
        ));
    }
    Ok(())
}

fn text(shown: &Shown) -> String {
    let now = time_text::now();
    let mut parts = vec![shown.run.fields(now)];
    if !shown.steps.is_empty() {
        parts.push(step::as_table(&shown.steps, now));
    }
    parts.extend(shown.pending.as_ref().map(|pending| pending.text(now)).filter(|text| !text.is_empty()));
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::pending::tests::sample_pending;
    use crate::run::step::tests::sample_steps;
    use crate::run::view::tests::sample_run;

    #[test]
    fn a_run_with_its_steps_as_json() {
        let pending = Some(sample_pending());
        let shown = Shown { run: sample_run().into(), steps: sample_steps(), pending };

        insta::assert_snapshot!(output::json(&shown));
    }
}
