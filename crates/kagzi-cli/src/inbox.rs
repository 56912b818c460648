//! `kagzi inbox …`: what runs ask people. One file per verb.

mod answer;
mod assign;
mod cancel;
mod claim;
mod comment;
mod contact;
mod list;
mod release;
mod show;
mod snooze;
mod view;

use kagzi::inbox::Inbox;

use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// On whose behalf; nobody proves it yet. [default: $USER]
    #[arg(long = "as", value_name = "NAME", global = true)]
    person: Option<String>,
    #[command(flatten)]
    list: list::Args,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Show one question: the form, who was told and how that went.
    Show(show::Args),
    /// Answer a question: approve, reject, an option, or data.
    Answer(answer::Args),
    /// Say that you work on it; others are told so for five minutes.
    Claim(claim::Args),
    /// Take that back.
    Release(release::Args),
    /// Ask other people instead.
    Assign(assign::Args),
    /// Hide it from your inbox for some time.
    Snooze(snooze::Args),
    /// Say something about it to the others.
    Comment(comment::Args),
    /// Take the question back: the wait of its run fails.
    Cancel(cancel::Args),
    /// Say how people are reached, and to which groups they belong.
    #[command(subcommand)]
    Contact(contact::Verb),
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let person = args.person.unwrap_or_else(|| std::env::var("USER").unwrap_or_default());
    anyhow::ensure!(!person.is_empty(), "say on whose behalf: --as NAME");
    let inbox = session.client().await?.inbox(person);
    match args.verb {
        None => list::perform(args.list, &inbox, session).await,
        Some(Verb::Show(args)) => show::perform(args, &inbox, session).await,
        Some(Verb::Answer(args)) => answer::perform(args, &inbox, session).await,
        Some(Verb::Claim(args)) => claim::perform(args, &inbox, session).await,
        Some(Verb::Release(args)) => release::perform(args, &inbox, session).await,
        Some(Verb::Assign(args)) => assign::perform(args, &inbox, session).await,
        Some(Verb::Snooze(args)) => snooze::perform(args, &inbox, session).await,
        Some(Verb::Comment(args)) => comment::perform(args, &inbox, session).await,
        Some(Verb::Cancel(args)) => cancel::perform(args, &inbox, session).await,
        Some(Verb::Contact(verb)) => contact::perform(verb, &inbox, session).await,
    }
}

/// The id of the question that is meant: whole, or the beginning of one that is open.
async fn find(inbox: &Inbox, id: &str) -> anyhow::Result<String> {
    if id.len() == 36 {
        return Ok(id.to_owned());
    }
    let open = inbox.questions().all().await?;
    let found: Vec<String> =
        open.into_iter().map(|question| question.id).filter(|known| known.starts_with(id)).collect();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => anyhow::bail!("no open question begins with '{id}'; list them with: kagzi inbox --all"),
        many => anyhow::bail!("{} open questions begin with '{id}'; write more of it", many.len()),
    }
}
