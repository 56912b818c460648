//! `client.once(key)`: work that is done once, whoever asks for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kagzi::client::OnceError;
use kagzi::testing::TestEngine;
use kagzi::workflow::{NonRetryableError, StepFailure};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn of_fifty_who_ask_at_once_one_does_the_work_and_all_have_its_result() {
    let engine = TestEngine::start().await;
    let done = Arc::new(AtomicU32::new(0));
    let asking = (0..50).map(|n: u32| {
        let (client, done) = (engine.client().clone(), done.clone());
        tokio::spawn(async move {
            let once = client.once("import:2026-11").input(&"november");
            once.run(|claim| async move {
                assert_eq!((claim.key.as_str(), claim.fence), ("import:2026-11", 1));
                done.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok(n)
            })
            .await
        })
    });
    let mut results = Vec::new();
    for asked in asking.collect::<Vec<_>>() {
        results.push(asked.await.unwrap().unwrap());
    }

    assert_eq!(done.load(Ordering::SeqCst), 1);
    assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
    let kept = engine.client().key("import:2026-11").await.unwrap();
    assert_eq!((kept.state, kept.fence, kept.result), ("completed", 1, Some(results[0].into())));
    let listed = engine.client().shared_keys().with_total().page("").await.unwrap();
    assert_eq!((listed.rows.len(), listed.rows[0].result.clone()), (1, None));
    engine.client().forget_key("import:2026-11").await.unwrap();
    let again: u32 = engine.client().once("import:2026-11").run(|_| async { Ok(99) }).await.unwrap();
    assert_eq!(again, 99, "what was forgotten is done again");
    engine.close().await;
}

#[tokio::test]
async fn work_that_failed_is_tried_by_the_next_unless_it_failed_for_good() {
    let engine = TestEngine::start().await;
    let once = || engine.client().once("k");

    let failed = once().run(|_| async { Err::<u32, _>(anyhow::anyhow!("no network")) }).await;
    assert!(matches!(failed, Err(OnceError::Work(_))), "{failed:?}");
    let failed = once().run(|_| async { Err::<u32, _>(NonRetryableError::new("no such file").into()) }).await;
    assert!(matches!(failed, Err(OnceError::Work(_))), "it was tried again: {failed:?}");
    let failed = once().run(|_| async { Ok(7) }).await;
    let Err(OnceError::Failed(StepFailure { code, message, .. })) = failed else { panic!("{failed:?}") };
    assert_eq!((code.as_str(), message.as_str()), ("NON_RETRYABLE", "no such file"));
    engine.close().await;
}

#[tokio::test]
async fn another_input_is_a_conflict_and_a_holder_makes_others_busy_who_do_not_wait() {
    let engine = TestEngine::start().await;
    let client = engine.client();
    let inner = client.once("k").input(&1).run(|_| async {
        let busy = client.once("k").or_busy().run(|_| async { Ok(0) }).await;
        assert!(matches!(busy, Err(OnceError::Busy { .. })), "{busy:?}");
        let conflict = client.once("k").input(&2).run(|_| async { Ok(0) }).await;
        assert!(matches!(conflict, Err(OnceError::Conflict(_))), "{conflict:?}");
        Ok(5)
    });
    assert_eq!(inner.await.unwrap(), 5);
    let conflict = client.once("k").input(&2).run(|_| async { Ok(0) }).await;
    assert!(matches!(conflict, Err(OnceError::Conflict(_))), "{conflict:?}");
    assert_eq!(client.once("k").input(&1).run(|_| async { Ok(0) }).await.unwrap(), 5);
    engine.close().await;
}

#[tokio::test]
async fn a_holder_that_was_silent_for_too_long_loses_its_claim_and_is_told_so() {
    let engine = TestEngine::start().await;
    let lost = engine.client().once("k").run(|first| {
        // Five minutes pass at once, so no renewal comes in between.
        engine.advance(300 * SECOND);
        let other = engine.client().once("k");
        async move {
            let second = other.run(|claim| async move { Ok(claim.fence) }).await?;
            assert_eq!((first.fence, second), (1, 2));
            Ok(0)
        }
    });
    let lost = lost.await;

    assert!(matches!(lost, Err(OnceError::Lost(_))), "{lost:?}");
    engine.close().await;
}

#[tokio::test]
async fn a_result_is_kept_for_its_time_and_then_the_work_is_done_again() {
    let engine = TestEngine::start().await;
    let once = |n: u32| engine.client().once("k").ttl(60 * SECOND).run(move |_| async move { Ok(n) });

    assert_eq!(once(1).await.unwrap(), 1);
    engine.advance(59 * SECOND);
    assert_eq!(once(2).await.unwrap(), 1);
    engine.advance(SECOND);
    assert_eq!(once(3).await.unwrap(), 3);
    engine.close().await;
}
