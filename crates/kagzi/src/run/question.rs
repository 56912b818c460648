//! Asking a person: `ctx.approval`, `ctx.decide`, `ctx.input` and `ctx.takeover`.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::Duration;

use futures_util::future::BoxFuture;
use kagzi_proto::v1::{self, InterventionType, StepStatus};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::run::answer::{Approval, Decision, Input, Takeover};
use crate::run::call::Called;
use crate::run::context::WorkflowContext;
use crate::run::signal::{Asked, Awaited, Heard, rejected, word};
use crate::run::state::RunEnd;
use crate::run::step::never;
use crate::run::turns::{Open, settled};
use crate::{payload, retry_policy};

/// How the channels begin on which answers are told; the path of the step follows.
const CHANNEL: &str = "~person/";

/// A question that is being described. Awaited, it is in the inbox of those who are asked, and the run waits
/// for the answer: for a minute or a month, without a worker.
#[must_use = "a question is asked by .await"]
pub struct Question<A> {
    called: anyhow::Result<Called>,
    asked: anyhow::Result<Box<v1::Question>>,
    reads: PhantomData<fn() -> A>,
}

impl<A> Question<A> {
    fn new(context: &WorkflowContext, name: &str, r#type: InterventionType) -> Question<A> {
        let asked = v1::Question { r#type: r#type.into(), title: name.to_owned(), ..Default::default() };
        Question { called: context.call(name), asked: Ok(Box::new(asked)), reads: PhantomData }
    }

    fn with(mut self, set: impl FnOnce(&mut v1::Question)) -> Self {
        if let Ok(asked) = &mut self.asked {
            set(asked);
        }
        self
    }

    fn with_json<T: Serialize + ?Sized>(
        mut self,
        value: &T,
        set: impl FnOnce(&mut v1::Question, String),
    ) -> Self {
        match (&mut self.asked, serde_json::to_string(value)) {
            (Ok(asked), Ok(text)) => set(asked, text),
            (Ok(_), Err(error)) => self.asked = Err(error.into()),
            (Err(_), _) => {}
        }
        self
    }

    /// One line that people see in their inbox; the name of the call unless told otherwise.
    pub fn title(self, title: impl Into<String>) -> Self {
        let title = title.into();
        self.with(|asked| asked.title = title)
    }

    /// What people read when they open it.
    pub fn message(self, message: impl Into<String>) -> Self {
        let message = message.into();
        self.with(|asked| asked.message = message)
    }

    /// More for whoever looks closer.
    pub fn details<T: Serialize + ?Sized>(self, details: &T) -> Self {
        self.with_json(details, |asked, text| asked.details = text)
    }

    /// Somebody who is asked: a person's name, or `group:NAME`. Where nobody is named, the run's user is
    /// asked, or everybody.
    pub fn to(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.with(|asked| asked.assignees.push(name))
    }

    /// How long it waits for an answer. Default: the server's, a day.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|asked| asked.timeout_ms = Some(retry_policy::millis(timeout)))
    }

    /// Asks somebody else too when nobody has answered for so long. Steps come in the order of their times,
    /// and before the end of the question's own.
    pub fn escalate(self, after: Duration, to: impl Into<String>) -> Self {
        let step = v1::QuestionEscalation { after_ms: retry_policy::millis(after), to: to.into() };
        self.with(|asked| asked.escalation.push(step))
    }

    /// Reminds everybody who is asked this often; at least a minute.
    pub fn remind(self, every: Duration) -> Self {
        self.with(|asked| asked.remind_ms = Some(retry_policy::millis(every)))
    }

    /// 0 to 9; higher is more urgent.
    pub fn priority(self, priority: u8) -> Self {
        self.with(|asked| asked.priority = priority.into())
    }

    /// The wait fails with the code `QUESTION_EXPIRED` when nobody answers in time, whatever the question.
    pub fn or_fail(self) -> Self {
        self.with(|asked| asked.on_timeout = "fail".into())
    }
}

impl Question<Approval> {
    /// What is to be approved. It is shown as it is, and the approval holds for exactly this.
    pub fn of<T: Serialize + ?Sized>(self, arguments: &T) -> Self {
        self.with_json(arguments, |asked, text| asked.arguments = text)
    }

    /// Whoever approves may change the arguments: [`Approval::edited`].
    ///
    /// ```no_run
    /// # async fn refund(ctx: kagzi::WorkflowContext, cents: u64) -> anyhow::Result<()> {
    /// let approval = ctx.approval("refund").of(&cents).editable().await?;
    /// # drop(approval);
    /// # Ok(()) }
    /// ```
    pub fn editable(self) -> Self {
        self.with(|asked| asked.editable = true)
    }

    /// How many people must approve; each has one vote. One who rejects is enough to reject it.
    pub fn quorum(self, approvals: u16) -> Self {
        self.with(|asked| asked.approvals = approvals.into())
    }
}

impl Question<Decision> {
    /// One of the answers that people choose from.
    pub fn option(self, id: impl Into<String>, label: impl Into<String>) -> Self {
        let option = v1::QuestionOption { id: id.into(), label: label.into(), ..Default::default() };
        self.with(|asked| asked.options.push(option))
    }

    /// The answer that is taken when nobody decides in time.
    pub fn default_option(self, id: impl Into<String>, label: impl Into<String>) -> Self {
        let (id, label) = (id.into(), label.into());
        let option = v1::QuestionOption { id, label, default: true, ..Default::default() };
        self.with(|asked| asked.options.push(option))
    }

    /// An answer that people should look at twice.
    pub fn destructive_option(self, id: impl Into<String>, label: impl Into<String>) -> Self {
        let (id, label) = (id.into(), label.into());
        let option = v1::QuestionOption { id, label, destructive: true, ..Default::default() };
        self.with(|asked| asked.options.push(option))
    }
}

impl Question<Takeover> {
    /// What to do there.
    pub fn instructions(self, instructions: impl Into<String>) -> Self {
        let instructions = instructions.into();
        self.with(|asked| asked.browser_instructions = instructions)
    }
}

impl WorkflowContext {
    /// Asks people to approve something, and waits for their answer. Nobody in time means no.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// # use std::time::Duration;
    /// async fn refund(ctx: WorkflowContext, cents: u64) -> anyhow::Result<String> {
    ///     let hour = Duration::from_secs(3600);
    ///     let approval = ctx
    ///         .approval("refund")
    ///         .title(format!("Refund {cents} cents?"))
    ///         .of(&cents)
    ///         .to("group:finance")
    ///         .quorum(2)
    ///         .timeout(hour * 24)
    ///         .remind(hour)
    ///         .escalate(hour * 4, "cfo")
    ///         .await?;
    ///     Ok(if approval.approved { format!("approved by {}", approval.by) } else { "rejected".into() })
    /// }
    /// ```
    pub fn approval(&self, name: &str) -> Question<Approval> {
        Question::new(self, name, InterventionType::Approval)
    }

    /// Lets somebody choose. Nobody in time means the default option, or a failure where there is none.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn ship(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    ///     let carrier = ctx
    ///         .decide("carrier")
    ///         .message("The parcel is heavy.")
    ///         .default_option("post", "By post")
    ///         .option("truck", "By truck, tomorrow")
    ///         .destructive_option("none", "Cancel the order")
    ///         .to("ada")
    ///         .await?;
    ///     Ok(carrier.option)
    /// }
    /// ```
    pub fn decide(&self, name: &str) -> Question<Decision> {
        Question::new(self, name, InterventionType::Decision)
    }

    /// Asks somebody for data of this type: its form is derived from it, the server refuses what does not
    /// fit and says where. Nobody in time is a failure.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Address {
    ///     city: String,
    /// }
    ///
    /// async fn ship(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    ///     let order = ctx.idempotency_key("order");
    ///     let address = ctx
    ///         .input::<Address>("address")
    ///         .details(&order)
    ///         .priority(5)
    ///         .or_fail()
    ///         .await?;
    ///     Ok(address.data.city)
    /// }
    /// ```
    pub fn input<T: DeserializeOwned + JsonSchema + Send + 'static>(&self, name: &str) -> Question<Input<T>> {
        self.input_of(name, schemars::schema_for!(T).to_value())
    }

    /// Asks somebody for data that fits this JSON Schema: the server refuses what does not, and says where.
    /// Nobody in time is a failure. [`input`](WorkflowContext::input) takes the schema from a type.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn ship(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    ///     let schema = serde_json::json!({ "type": "string", "minLength": 1 });
    ///     let address = ctx.input_of::<String>("address", schema).to("ada").await?;
    ///     Ok(format!("to {}, says {}", address.data, address.by))
    /// }
    /// ```
    pub fn input_of<T: DeserializeOwned + Send + 'static>(
        &self,
        name: &str,
        schema: serde_json::Value,
    ) -> Question<Input<T>> {
        let schema = schema.to_string();
        Question::new(self, name, InterventionType::Input).with(|asked| asked.schema = schema)
    }

    /// Asks somebody to do something by hand in a browser: to sign in, to solve a riddle. Nobody in time is a
    /// failure.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn book(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    ///     let done = ctx
    ///         .takeover("login", "https://bank.example/login")
    ///         .instructions("Sign in, then write down the number of the session.")
    ///         .to("ada")
    ///         .await?;
    ///     Ok(done.proof)
    /// }
    /// ```
    pub fn takeover(&self, name: &str, url: &str) -> Question<Takeover> {
        let url = url.to_owned();
        Question::new(self, name, InterventionType::BrowserTakeover).with(|asked| asked.browser_url = url)
    }
}

impl<A: DeserializeOwned + Send + 'static> IntoFuture for Question<A> {
    type Output = anyhow::Result<A>;
    type IntoFuture = BoxFuture<'static, anyhow::Result<A>>;

    fn into_future(self) -> Self::IntoFuture {
        let Question { called, asked, .. } = self;
        Box::pin(async move {
            let (called, asked) = (called?, asked?);
            let slot = called.slot.clone();
            let path = slot.step.path.clone();
            match slot.track(ask(called, asked)).await? {
                Heard::Taken { signal, .. } => {
                    let read = payload::decode(signal.as_ref());
                    read.map_err(|error| anyhow::anyhow!("the answer is of another type: {error}"))
                }
                Heard::Failed { failure, .. } => Err(rejected(&path, failure)),
                Heard::Elapsed | Heard::Closed | Heard::Silent => {
                    Err(anyhow::anyhow!("question '{path}' ended without an answer"))
                }
            }
        })
    }
}

/// Asks in its turn, and again whenever an answer may have come. A replay asks too: where the question was
/// taken back meanwhile, it is asked anew.
async fn ask(called: Called, asked: Box<v1::Question>) -> anyhow::Result<Heard> {
    let Called { slot, recorded } = called;
    if let Some(recorded) = recorded {
        let entry = recorded.entry;
        match entry.status() {
            StepStatus::Completed => {
                slot.released().await;
                return Ok(Heard::Taken { id: entry.signal_id, signal: entry.result });
            }
            StepStatus::Failed => {
                slot.released().await;
                let failure = entry.failure.map(|failure| *failure);
                return Ok(Heard::Failed { id: entry.signal_id, failure });
            }
            // It is open, or its failure was forgiven.
            StepStatus::Waiting | StepStatus::Pending => {}
            status @ (StepStatus::Sleeping | StepStatus::Running | StepStatus::Unspecified) => {
                let (path, position) = (&slot.step.path, slot.step.position);
                let status = status.as_str_name();
                let message =
                    format!("recorded {path} at position {position} as {status}, got a question to a person");
                never(slot.run.halt_here(RunEnd::Blocked(message)).await)
            }
        }
    }
    let _open = Open::new(&slot);
    settled(&slot).await;
    let channel = format!("{CHANNEL}{}", slot.step.path);
    let awaited = Awaited { channel, timeout: None, last_call: false, ask: Some(asked) };
    Ok(word(&slot, &awaited, Asked { asks: true, until: None }).await)
}
