//! AnswerIntervention: somebody answers, and the run goes on in the same commit.

use kagzi_engine::Engine;
use kagzi_model::{
    Name,
    intervention::{Answer, Answering, InterventionCommand, Recorded},
};
use kagzi_proto::v1::{self, answer_intervention_request::Answer as Given};
use tonic::Status;
use uuid::Uuid;

use super::get_intervention::changed;
use crate::{
    check::{self, invalid},
    services::limits,
    status::from_engine,
};

pub async fn handle(
    engine: &Engine,
    request: v1::AnswerInterventionRequest,
) -> Result<v1::AnswerInterventionResponse, Status> {
    let key = check::intervention_key(&request.namespace_id, &request.intervention_id)?;
    let by = check::name("by", &request.by)?;
    let bytes = request.answer.as_ref().map_or(0, |given| match given {
        Given::OptionId(text) | Given::Data(text) | Given::Proof(text) => text.len(),
        Given::Approved(_) => request.edited.len(),
    });
    let max = limits(engine).max_bytes;
    if bytes > max {
        return Err(check::too_large("answer", bytes, max));
    }
    let answer = match request.answer {
        Some(Given::OptionId(id)) => Answer::Option(check::name("option_id", &id)?),
        Some(Given::Data(text)) => {
            let data = check::json("data", &text)?;
            Answer::Data(data.ok_or_else(|| invalid("data", "", "it must be JSON"))?)
        }
        Some(Given::Approved(true)) => Answer::Approved { edited: check::json("edited", &request.edited)? },
        Some(Given::Approved(false)) => Answer::Rejected,
        Some(Given::Proof(proof)) => Answer::Completed { proof },
        None => return Err(invalid("answer", "", "it must be an option, data, approved or proof")),
    };
    if let Answer::Data(data) = &answer {
        // Outside the lane: the question never changes, so what fits now fits then.
        let row = engine.intervention(&key).await.map_err(from_engine)?;
        if let Some(schema) = &row.ask.schema {
            check::data_fits(schema, data)?;
        }
    }
    let id = match check::optional_name("answer_id", &request.answer_id)? {
        Some(id) => id,
        None => Name::from(Uuid::now_v7().to_string()),
    };
    let answering = Answering {
        by,
        answer,
        id,
        note: check::note(&request.note)?,
        if_version: request.expected_version,
        force: request.force,
    };
    let command = InterventionCommand::Answer(Box::new(answering));
    let (intervention, recorded) = changed(engine, &key, command).await?;
    let (votes, votes_needed) = match recorded {
        Recorded::Vote { votes, of } => (votes.into(), of.into()),
        Recorded::Decided | Recorded::Before | Recorded::Done => (0, 0),
    };
    let closed = !intervention.answered_by.is_empty();
    Ok(v1::AnswerInterventionResponse {
        decided: closed && votes_needed == 0,
        already: recorded == Recorded::Before,
        votes,
        votes_needed,
        intervention: Some(intervention),
    })
}
