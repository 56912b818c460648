//! `kagzi handling explain`: the ruling on a failure, without a server.

use std::path::PathBuf;

use kagzi_model::{Class, Failure, Rules, Ruling, Rung, Said, rule_on};
use serde::Serialize;
use serde_json::Value;

use super::rules;
use crate::output::{self, Format};
use crate::table;

#[derive(clap::Args)]
pub struct Args {
    /// The kind of the step, e.g. external_api, llm_invocation, database.
    #[arg(long)]
    kind: Option<String>,
    /// The failure's code, e.g. quota_exceeded.
    #[arg(long, required_unless_present_any = ["http", "class"])]
    code: Option<String>,
    /// The status of an HTTP answer; without --code, its code is the one that the SDK would give it.
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(400..=599))]
    http: Option<u16>,
    /// The class that the failure gives itself: transient, recoverable, user_resolvable, permanent,
    /// catastrophic.
    #[arg(long, value_parser = class)]
    class: Option<Class>,
    /// The failure says that the same again is useless.
    #[arg(long)]
    non_retryable: bool,
    /// A file of [[rule]] tables, read as rules of the step.
    #[arg(long, value_name = "FILE")]
    step_rules: Option<PathBuf>,
    /// The same as rules of the namespace.
    #[arg(long, value_name = "FILE")]
    namespace_rules: Option<PathBuf>,
    /// The same as rules of the server.
    #[arg(long, value_name = "FILE")]
    server_rules: Option<PathBuf>,
}

fn class(text: &str) -> Result<Class, String> {
    let names = Class::ALL.map(Class::name).join(", ");
    Class::from_name(text).ok_or_else(|| format!("there is no such class; write one of: {names}"))
}

pub fn perform(args: Args, format: Format) -> anyhow::Result<()> {
    let step = rules::read(args.step_rules.as_ref())?;
    let namespace = rules::read(args.namespace_rules.as_ref())?;
    let server = rules::read(args.server_rules.as_ref())?;
    let rules = Rules { step: &step, namespace: &namespace, server: &server };
    let ruling = rule_on(args.kind.as_deref(), &failure(&args), &rules);
    let view = View::of(&ruling);
    match format {
        Format::Table => output::print(&as_table(&view)),
        Format::Json => output::print_json(&view),
    }
}

/// As a worker would report it.
fn failure(args: &Args) -> Failure {
    let line = args.http.and_then(kagzi_model::http_line);
    let code = args.code.as_deref().or(line.map(|line| line.code)).unwrap_or("ERROR");
    let failure = Failure::new(code, "")
        .http(args.http.map_or(0, u32::from))
        .described(args.class.map_or("", Class::name), "");
    if args.non_retryable { failure.non_retryable() } else { failure }
}

#[derive(Serialize)]
struct Word {
    word: String,
    value: Value,
    from: String,
}

#[derive(Serialize)]
struct View {
    words: Vec<Word>,
    /// The rungs from the first on. A step climbs those that it, or its namespace, has something for.
    ladder: Vec<&'static str>,
}

impl View {
    fn of(ruling: &Ruling) -> View {
        let mut words =
            vec![named("class", &ruling.class, Class::name), named("first", &ruling.first, Rung::name)];
        if !ruling.retries {
            let from = kagzi_model::Source::Reporter.to_string();
            words.push(Word { word: "retries".into(), value: false.into(), from });
        }
        words.extend(policy(ruling));
        let text = |said: &Said<kagzi_model::Name>| said.value.to_string();
        let said = [
            ruling.before_retry.as_ref().map(|said| ("before_retry", text(said), &said.from)),
            ruling.hint.as_ref().map(|said| ("hint", text(said), &said.from)),
            ruling.message.as_ref().map(|said| ("message", said.value.clone(), &said.from)),
            ruling.interaction.as_ref().map(|said| ("interaction", text(said), &said.from)),
            ruling.severity.as_ref().map(|said| ("severity", said.value.name().to_owned(), &said.from)),
        ];
        words.extend(said.into_iter().flatten().map(|(word, value, from)| Word {
            word: word.to_owned(),
            value: value.into(),
            from: from.to_string(),
        }));
        let usable = |rung: &Rung| ruling.retries || *rung != Rung::Retry;
        let above = Rung::ALL.into_iter().filter(|rung| *rung >= ruling.first.value);
        View { words, ladder: above.filter(usable).map(Rung::name).collect() }
    }
}

fn named<T: Copy>(word: &str, said: &Said<T>, name: fn(T) -> &'static str) -> Word {
    Word { word: word.to_owned(), value: name(said.value).into(), from: said.from.to_string() }
}

/// Each field of the policy with the strongest voice that has it.
fn policy(ruling: &Ruling) -> Vec<Word> {
    let fields = |policy| match serde_json::to_value(policy) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => serde_json::Map::new(),
    };
    let layers: Vec<_> = ruling.policies.iter().map(|said| (fields(&said.value), &said.from)).collect();
    let merged = fields(&ruling.policy());
    let from = |field: &str, value: &Value| {
        layers.iter().find(|(layer, _)| layer.get(field) == Some(value)).map(|(_, from)| from.to_string())
    };
    let word = |(field, value): (String, Value)| {
        let from = from(&field, &value).unwrap_or_default();
        Word { word: format!("retry.{field}"), value, from }
    };
    merged.into_iter().map(word).collect()
}

fn as_table(view: &View) -> String {
    let mut table = table::with_columns(&["WORD", "VALUE", "FROM"]);
    for Word { word, value, from } in &view.words {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        table.add_row([word.clone(), value, from.clone()]);
    }
    let ladder = view.ladder.join(" → ");
    format!(
        "{}\n\n{ladder}\nA step climbs the rungs that it or its namespace has something for.",
        table::text(table)
    )
}
