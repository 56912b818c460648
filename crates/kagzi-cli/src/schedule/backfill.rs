use crate::output::{self, Format};
use crate::session::Session;
use jiff::Timestamp;
use kagzi_proto::v1::BackfillScheduleRequest;

#[derive(clap::Args)]
pub struct Args {
    /// The schedule's id.
    id: String,
    /// Times after this one, e.g. 2026-11-01T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    from: Timestamp,
    /// Up to this one; the present unless set.
    #[arg(long, value_name = "TIME")]
    to: Option<Timestamp>,
    /// Start each run when the one before has ended, instead of all at once.
    #[arg(long)]
    one_by_one: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let request = BackfillScheduleRequest {
        schedule_id: args.id.clone(),
        namespace_id: session.namespace.clone(),
        from: Some(to_wire(args.from)),
        to: args.to.map(to_wire),
        one_by_one: args.one_by_one,
    };
    let answer = session.schedules().await?.backfill_schedule(request).await?.into_inner();
    match session.format {
        Format::Json => output::print_json(&serde_json::json!({ "times": answer.times })),
        Format::Table => {
            output::print(&format!("{} times, those without a run are started", answer.times))?;
            output::note(&format!("follow them with: kagzi schedule runs {}", args.id));
            Ok(())
        }
    }
}

fn to_wire(at: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds: at.as_second(), nanos: at.subsec_nanosecond() }
}
