//! The kinds of moves, each with its weight. Whoever adds a request, a command or a sweep to the contract is
//! asked by the compiler which move it is, and a move that is listed here is drawn.

use kagzi_model::{
    CreateTrigger, DeleteTrigger, GateCommand, Name, NamespaceCommand, PublishEvent, WorkerId,
    intervention::InterventionCommand, schedule::ScheduleCommand,
};
use kagzi_store::{
    Beat, ChangeGate, ChangeNamespace, CutOff, Deregister, Drain, Offline, Register, SweepKind,
};

use kagzi_model::{Command, schedule::ScheduleRequest};

/// One operation on a store.
#[derive(Debug, Clone)]
pub enum Move {
    Apply(Vec<Command>),
    Register(Register),
    Beat(Beat),
    Drain(Drain),
    CutOff(CutOff),
    Deregister(Deregister),
    Offline(Offline),
    StandBy {
        demand: u64,
        worker: WorkerId,
        types: Vec<Name>,
        once: bool,
    },
    Withdraw {
        demand: u64,
    },
    /// The worker's connection breaks: nobody listens any more.
    HangUp {
        demand: u64,
    },
    Schedule(ScheduleRequest),
    Namespace(Box<ChangeNamespace>),
    Gate(ChangeGate),
    Publish(PublishEvent),
    CreateTrigger(CreateTrigger),
    DeleteTrigger(DeleteTrigger),
    /// Somebody does something with one of the questions of a namespace, by its place in the list.
    Question {
        namespace: Name,
        place: usize,
        command: Box<InterventionCommand>,
    },
    Sweep(SweepKind),
    Pass {
        micros: u64,
    },
}

macro_rules! kinds {
    ($($kind:ident $weight:literal,)*) => {
        /// What a move is about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $($kind,)*
        }

        impl Kind {
            pub const ALL: &[Kind] = &[$(Kind::$kind),*];
            /// The sum of all weights.
            pub const TOTAL: usize = 0 $(+ $weight)*;

            /// The kind at a place between 0 and the sum.
            pub fn at(mut place: usize) -> Kind {
                $(if place < $weight {
                    return Kind::$kind;
                }
                place -= $weight;)*
                unreachable!("{place} is behind the last kind")
            }
        }
    };
}

kinds! {
    // One command, several at once, a worker's report, a person's order.
    Start 26,
    Several 14,
    Report 64,
    Order 10,
    // Workers.
    Register 10,
    Beat 10,
    Drain 1,
    CutOff 2,
    Deregister 1,
    Offline 1,
    StandBy 26,
    Withdraw 2,
    HangUp 2,
    // Schedules.
    CreateSchedule 4,
    UpdateSchedule 1,
    DeleteSchedule 1,
    PauseSchedule 1,
    ResumeSchedule 2,
    TriggerSchedule 1,
    BackfillSchedule 1,
    // Namespaces and gates.
    CreateNamespace 1,
    UpdateNamespace 2,
    DisableNamespace 1,
    EnableNamespace 4,
    PauseGate 1,
    ResumeGate 12,
    LimitGate 2,
    // Events and triggers.
    Publish 12,
    CreateTrigger 3,
    DeleteTrigger 1,
    // Questions to people.
    Question 8,
    // Housekeeping.
    Sweep 24,
    Pass 22,
}

impl Move {
    /// What the move is about.
    pub fn kind(&self) -> Kind {
        match self {
            Move::Apply(commands) if commands.len() > 1 => Kind::Several,
            Move::Apply(commands) => match commands.first().map(|command| &command.act) {
                None | Some(kagzi_model::Act::Start(_)) => Kind::Start,
                Some(kagzi_model::Act::Report { .. }) => Kind::Report,
                Some(kagzi_model::Act::Order { .. } | kagzi_model::Act::Duty(_)) => Kind::Order,
            },
            Move::Register(_) => Kind::Register,
            Move::Beat(_) => Kind::Beat,
            Move::Drain(_) => Kind::Drain,
            Move::CutOff(_) => Kind::CutOff,
            Move::Deregister(_) => Kind::Deregister,
            Move::Offline(_) => Kind::Offline,
            Move::StandBy { .. } => Kind::StandBy,
            Move::Withdraw { .. } => Kind::Withdraw,
            Move::HangUp { .. } => Kind::HangUp,
            Move::Schedule(request) => match &request.command {
                ScheduleCommand::Create(_) => Kind::CreateSchedule,
                ScheduleCommand::Update { .. } => Kind::UpdateSchedule,
                ScheduleCommand::Delete => Kind::DeleteSchedule,
                ScheduleCommand::Pause { .. } => Kind::PauseSchedule,
                ScheduleCommand::Resume { .. } => Kind::ResumeSchedule,
                ScheduleCommand::Trigger { .. } => Kind::TriggerSchedule,
                ScheduleCommand::Backfill(_) => Kind::BackfillSchedule,
            },
            Move::Namespace(change) => match &change.command {
                NamespaceCommand::Create(_) => Kind::CreateNamespace,
                NamespaceCommand::Update(_) => Kind::UpdateNamespace,
                NamespaceCommand::Disable { .. } => Kind::DisableNamespace,
                NamespaceCommand::Enable => Kind::EnableNamespace,
            },
            Move::Gate(change) => match &change.command {
                GateCommand::Pause { .. } => Kind::PauseGate,
                GateCommand::Resume => Kind::ResumeGate,
                GateCommand::Limit { .. } => Kind::LimitGate,
            },
            Move::Publish(_) => Kind::Publish,
            Move::CreateTrigger(_) => Kind::CreateTrigger,
            Move::DeleteTrigger(_) => Kind::DeleteTrigger,
            Move::Question { .. } => Kind::Question,
            Move::Sweep(_) => Kind::Sweep,
            Move::Pass { .. } => Kind::Pass,
        }
    }
}
