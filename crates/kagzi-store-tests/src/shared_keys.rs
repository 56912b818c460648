//! Shared keys: one holder at a time, and one result for everybody.

use std::sync::Arc;

use futures_util::future::join_all;
use kagzi_model::{
    ClaimKey, FinishKey, ForgetKey, KeyHolder, KeyOutcome, KeyState, NounRejection, NounRule, ReadKey,
    SharedKey,
};
use kagzi_store::ChangeNoun;

use crate::Stage;

const DAY: i64 = 86_400_000;

fn holder(n: u32) -> KeyHolder {
    KeyHolder::Client { name: format!("client-{n}").as_str().into() }
}

fn claim(stage: &Stage, n: u32) -> ClaimKey {
    let (namespace, key, holder) = (stage.namespace.clone(), "import".into(), holder(n));
    ClaimKey { namespace, key, holder, input: None, ttl_ms: DAY, lock_ms: Some(60_000), released: None }
}

fn finish(stage: &Stage, n: u32, fence: u64, outcome: KeyOutcome) -> FinishKey {
    FinishKey { namespace: stage.namespace.clone(), key: "import".into(), holder: holder(n), fence, outcome }
}

async fn ask(stage: &Stage, rule: impl NounRule + 'static) -> Result<SharedKey, NounRejection> {
    stage.store.ask(ChangeNoun(Arc::new(rule))).await.unwrap()?.read()
}

pub async fn of_a_hundred_claims_at_once_one_holds_the_key_and_all_read_its_result(stage: Stage) {
    let claims = join_all((0..100).map(|n| ask(&stage, claim(&stage, n)))).await;
    let keys: Vec<SharedKey> = claims.into_iter().map(|claimed| claimed.unwrap()).collect();
    let holders: Vec<u32> =
        (0..100).zip(&keys).filter(|(n, key)| key.holder == holder(*n)).map(|(n, _)| n).collect();

    assert_eq!(holders.len(), 1, "{holders:?}");
    assert!(keys.iter().all(|key| (key.fence, key.state) == (1, KeyState::InProgress)));
    let done = KeyOutcome::Completed { result: "42".into() };
    ask(&stage, finish(&stage, holders[0], 1, done)).await.unwrap();
    for n in 0..100 {
        let key = ask(&stage, claim(&stage, n)).await.unwrap();
        assert_eq!((key.state, key.result.as_deref(), key.fence), (KeyState::Completed, Some("42"), 1));
    }
}

pub async fn a_claim_that_ran_out_is_taken_by_one_and_its_late_word_changes_nothing(stage: Stage) {
    ask(&stage, claim(&stage, 0)).await.unwrap();
    stage.pass_ms(60_000);
    let claims = join_all((1..20).map(|n| ask(&stage, claim(&stage, n)))).await;
    let fences: Vec<u64> = claims.into_iter().map(|claimed| claimed.unwrap().fence).collect();
    assert!(fences.iter().all(|fence| *fence == 2), "{fences:?}");

    let late = KeyOutcome::Completed { result: "late".into() };
    let key = ask(&stage, finish(&stage, 0, 1, late)).await.unwrap();
    assert_eq!((key.state, key.fence, key.result), (KeyState::InProgress, 2, None));
}

pub async fn a_forgotten_key_is_claimed_anew_and_an_unknown_one_is_not_found(stage: Stage) {
    let read = || ReadKey { namespace: stage.namespace.clone(), key: "import".into() };
    let forget = || ForgetKey { namespace: stage.namespace.clone(), key: "import".into(), if_expired: false };
    assert!(matches!(ask(&stage, read()).await, Err(NounRejection::NotFound(_))));
    let made = ask(&stage, claim(&stage, 0)).await.unwrap();
    assert_eq!(ask(&stage, read()).await.unwrap(), made);
    ask(&stage, forget()).await.unwrap();
    assert!(matches!(ask(&stage, forget()).await, Err(NounRejection::NotFound(_))));
    assert_eq!(ask(&stage, claim(&stage, 1)).await.unwrap().holder, holder(1));
}
