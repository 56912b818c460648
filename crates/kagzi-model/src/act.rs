//! The acts: what a command may ask of a run. Each stands beside its rule, in the file of its name under
//! `decide/`.

pub use crate::decide::{
    begin_step::BeginStep,
    block::Block,
    cancel::Cancel,
    claim::Claim,
    close_step::CloseStep,
    complete::Complete,
    expire::Expire,
    fail::Fail,
    fail_step::FailStep,
    note_handler::NoteHandler,
    orphan::{Loss, Orphan},
    park::Park,
    progress::Progress,
    record_step::RecordStep,
    record_steps::RecordSteps,
    release::Release,
    renew::Renew,
    resume::Resume,
    retry::Retry,
    set_label::SetLabel,
    sleep::Sleep,
    sleep_over::SleepOver,
    terminate::Terminate,
};
