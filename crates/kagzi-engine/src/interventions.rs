//! Questions to people: read, changed, listed.

use kagzi_model::{
    Name, RunId, Timestamp, in_time,
    intervention::{
        Contact, Intervention, InterventionCommand, InterventionKey, InterventionRejection,
        InterventionRequest, InterventionState, InterventionType,
    },
};
use kagzi_store::{ANYBODY, Direction, InterventionFilter, InterventionReply, PageRequest};

use crate::{Engine, EngineError};

/// Contacts that are read at once.
const CONTACTS_MAX: usize = 10_000;

impl Engine {
    /// One question.
    pub async fn intervention(&self, key: &InterventionKey) -> Result<Intervention, EngineError> {
        let found = self.store().intervention(key).await?;
        found.ok_or_else(|| InterventionRejection::NotFound(key.clone()).into())
    }

    /// Carries out what somebody asks of a question that was read before.
    pub async fn change_intervention(
        &self,
        row: &Intervention,
        command: InterventionCommand,
    ) -> Result<InterventionReply, EngineError> {
        let request = InterventionRequest { key: row.key.clone(), run: row.run, command };
        Ok(self.store().ask(request).await??)
    }

    /// Everything under which a person is asked: the name, the groups of the contact, and everybody.
    pub async fn asked_as(&self, namespace: &Name, person: &Name) -> Result<Vec<Name>, EngineError> {
        let kind = "contact";
        let rows = self.store().nouns(namespace, kind, Direction::Next, None, CONTACTS_MAX).await?;
        let own = rows.iter().find(|row| row.key.id == *person);
        let groups = own.and_then(|row| row.read::<Contact>().ok()).map(|contact| contact.groups);
        let mut names = vec![person.clone()];
        names.extend(groups.into_iter().flatten().map(|group| Name::from(format!("group:{group}"))));
        names.push(Name::from(ANYBODY));
        Ok(names)
    }

    /// What a run asks people now, in words, with the command that answers; none where nothing is open.
    pub(crate) async fn asked_of(
        &self,
        namespace: &Name,
        run: RunId,
        now: Timestamp,
    ) -> Result<Option<String>, EngineError> {
        let states = vec![InterventionState::Queued, InterventionState::Pending];
        let filter = InterventionFilter { states, run: Some(run), ..InterventionFilter::default() };
        let page = PageRequest { from: None, direction: Direction::Next, limit: ASKED_SHOWN };
        let found = self.store().interventions(namespace, &filter, &page).await?;
        let sentences: Vec<String> = found.rows.iter().map(|row| asks(now, row)).collect();
        Ok((!sentences.is_empty()).then(|| sentences.join("; ")))
    }
}

/// Questions of one run that are told at once.
const ASKED_SHOWN: usize = 5;

fn asks(now: Timestamp, row: &Intervention) -> String {
    let (id, title) = (row.key.id, &row.ask.title);
    let people = match row.assignees.as_slice() {
        [] => "anybody".to_owned(),
        asked => asked.iter().map(|name| &**name).collect::<Vec<_>>().join(", "),
    };
    let due = match (row.state, row.expires_at) {
        (InterventionState::Queued, _) => ", queued behind ten others".to_owned(),
        (_, Some(at)) => format!(", until {}", in_time(now, at)),
        (_, None) => String::new(),
    };
    let claimed = row.claimed(now).map_or_else(String::new, |claim| format!(", claimed by {}", claim.by));
    let answer = match row.ask.kind {
        InterventionType::Approval => "approve|reject".to_owned(),
        InterventionType::Decision => {
            row.ask.options.iter().map(|choice| &*choice.id).collect::<Vec<_>>().join("|")
        }
        InterventionType::Input => "--data JSON".to_owned(),
        InterventionType::BrowserTakeover => "--proof TEXT".to_owned(),
        InterventionType::ErrorResolution => "RESOLUTION".to_owned(),
    };
    format!("it asks {people}: '{title}'{due}{claimed}; answer with: kagzi inbox answer {id} {answer}")
}
