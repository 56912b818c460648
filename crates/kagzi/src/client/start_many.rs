//! Many starts in few calls.

use kagzi_proto::{refusal, v1};
use tracing::Instrument;

use crate::client::handle::RunHandle;
use crate::client::start::{StartBuilder, encoded, repeated};
use crate::client::wire::Workflows;
use crate::client::{Client, Repeat};
use crate::error::{Code, Error, Refusal};
use crate::limits::{START_BATCH_BYTES_MAX, START_BATCH_LEN_MAX};
use crate::trace;

/// One answer per start, in order. A start that cannot even be described does not stop the others.
pub(crate) async fn start_many(client: &Client, starts: Vec<StartBuilder>) -> Vec<Result<RunHandle, Error>> {
    let mut answers = Vec::with_capacity(starts.len());
    let mut batch = Batch::default();
    for start in starts {
        let described = start.into_request();
        let plain = described.as_ref().ok().filter(|_| !client.codecs.is_empty()).cloned();
        let encoded = match described {
            Ok(request) => encoded(client, request).await,
            Err(error) => Err(error),
        };
        match encoded.map(|request| (request, plain)) {
            Ok((request, plain)) => {
                if batch.is_full_for(&request) {
                    std::mem::take(&mut batch).send(client, &mut answers).await;
                }
                batch.add(answers.len(), *request);
                batch.plain.extend(plain.map(|plain| *plain));
                // Overwritten by the answer of its batch.
                answers.push(Err(unanswered()));
            }
            Err(error) => answers.push(Err(error)),
        }
    }
    batch.send(client, &mut answers).await;
    answers
}

#[derive(Default)]
struct Batch {
    /// Where each answer belongs.
    places: Vec<usize>,
    requests: Vec<v1::StartWorkflowRequest>,
    /// The same before codecs changed them; empty without codecs.
    plain: Vec<v1::StartWorkflowRequest>,
    bytes: usize,
}

impl Batch {
    fn is_full_for(&self, request: &v1::StartWorkflowRequest) -> bool {
        let bytes = self.bytes + payload_bytes(request);
        !self.requests.is_empty()
            && (self.requests.len() >= START_BATCH_LEN_MAX || bytes > START_BATCH_BYTES_MAX)
    }

    fn add(&mut self, place: usize, request: v1::StartWorkflowRequest) {
        self.bytes += payload_bytes(&request);
        self.places.push(place);
        self.requests.push(request);
    }

    async fn send(self, client: &Client, answers: &mut [Result<RunHandle, Error>]) {
        if self.requests.is_empty() {
            return;
        }
        let has_ids = self.requests.iter().all(|request| !request.business_id.is_empty());
        let repeat = if has_ids { Repeat::Safe } else { Repeat::Unsafe };
        let request = v1::StartWorkflowsRequest { requests: self.requests };
        let span = tracing::info_span!("start_runs", otel.kind = "client", starts = request.requests.len());
        let answered = client
            .call("start runs", repeat, |mut rpc: Workflows| {
                let mut request = tonic::Request::new(request.clone());
                trace::send_with(&mut request);
                async move { rpc.start_workflows(request).await }
            })
            .instrument(span)
            .await;
        match answered {
            Ok(answer) => {
                let mut plain = self.plain.into_iter();
                for (place, result) in self.places.into_iter().zip(answer.results) {
                    answers[place] = match (handle_of(client, result), plain.next()) {
                        (Err(refused), Some(plain)) => repeated(client, &plain, refused).await,
                        (answer, _) => answer,
                    };
                }
            }
            Err(error) => self.places.into_iter().for_each(|place| answers[place] = Err(error.clone())),
        }
    }
}

fn handle_of(client: &Client, result: v1::StartResult) -> Result<RunHandle, Error> {
    match result.refused {
        None => Ok(RunHandle::new(client.clone(), result.run_id, result.already_exists)),
        Some(refused) => Err(Error::refused("start a run", &refusal::from_rpc(refused))),
    }
}

fn unanswered() -> Error {
    Refusal::new("start a run", Code::Internal, "the server left this start unanswered").into()
}

fn payload_bytes(request: &v1::StartWorkflowRequest) -> usize {
    request.input.as_ref().map_or(0, |input| input.data.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(bytes: usize) -> v1::StartWorkflowRequest {
        let input = v1::Payload { data: vec![b'1'; bytes].into(), content_type: String::new() };
        v1::StartWorkflowRequest { input: Some(input), ..Default::default() }
    }

    #[test]
    fn a_batch_is_full_by_number_or_by_size_but_never_when_empty() {
        let mut batch = Batch::default();
        assert!(!batch.is_full_for(&request(START_BATCH_BYTES_MAX * 2)));

        batch.add(0, request(START_BATCH_BYTES_MAX - 1));
        assert!(!batch.is_full_for(&request(1)));
        assert!(batch.is_full_for(&request(2)));

        let mut batch = Batch::default();
        (0..START_BATCH_LEN_MAX).for_each(|place| batch.add(place, request(0)));
        assert!(batch.is_full_for(&request(0)));
    }
}
