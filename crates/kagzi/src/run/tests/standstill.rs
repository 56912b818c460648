//! What counts as a standstill, and what only looks like one.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::scripted_server::failed_step;
use super::scripted_server::{ScriptedServer, assert_parked, assign, recorded, retry_in, run_output};

/// Uses up what this task may do before it must let others run, in one poll of its own.
async fn burns_the_budget_in_poll(number: u64) {
    let mut polls = 0;
    poll_fn(|cx| {
        polls += 1;
        if polls == number {
            while pin!(tokio::task::coop::consume_budget()).poll(cx).is_ready() {}
        }
        Poll::<()>::Pending
    })
    .await
}

/// Is polled again before the function stands still; tokio's `yield_now` would let it stand still first.
async fn once_more() {
    let mut woken = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut woken, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// Out of budget, a `select!` returns without having looked at its branches. A second release at that moment
/// would let it see two at once, and then the order of the branches decides instead of the record's.
#[tokio::test(start_paused = true)]
async fn a_function_that_ran_out_of_budget_does_not_stand_still() {
    for burns in 1..=10 {
        let mut server = ScriptedServer::execute(assign("0", vec![]), move |ctx, _| async move {
            let first = ctx.run("first", async { Ok(1_u64) });
            let second = ctx.run("second", async {
                once_more().await;
                Ok(2_u64)
            });
            kagzi_select(burns_the_budget_in_poll(burns), second, first).await
        });

        assert_eq!(recorded(server.commit().await).0, "first", "burnt in poll {burns}");
        assert_eq!(run_output(server.commit().await), 1, "burnt in poll {burns}");
    }
}

async fn kagzi_select(
    burn: impl Future<Output = ()>,
    second: impl Future<Output = anyhow::Result<u64>>,
    first: impl Future<Output = anyhow::Result<u64>>,
) -> anyhow::Result<u64> {
    let (mut burn, mut second, mut first) = (pin!(burn), pin!(second), pin!(first));
    poll_fn(|cx| {
        let _ = burn.as_mut().poll(cx);
        let select = async {
            crate::select! { won = &mut second => won, won = &mut first => won }
        };
        pin!(select).poll(cx)
    })
    .await
}

/// A step that is woken by another thread at the very moment in which the executor looks whether the run can
/// be parked is neither forgotten nor parked away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wake_that_races_with_a_park_is_not_lost() {
    const ROUNDS: u64 = 100_000;
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let (wakes, mut woken) = tokio::sync::mpsc::channel(1);
        let thread = std::thread::spawn(move || (0..ROUNDS).all(|n| wakes.blocking_send(n).is_ok()));
        let busy = ctx.run("busy", async move {
            let mut rounds = 0;
            while woken.recv().await.is_some() {
                rounds += 1;
            }
            anyhow::ensure!(thread.join().is_ok_and(|sent| sent), "the other thread died");
            Ok(rounds)
        });
        let blocked = ctx.run::<u64, _>("blocked", async { anyhow::bail!("down") });
        let (busy, blocked) = tokio::join!(busy, blocked);
        Ok(busy? + blocked?)
    });

    failed_step(server.answer(retry_in(3_600)).await);
    let (path, _, _, rounds) = recorded(server.commit().await);

    assert_eq!((path.as_str(), rounds), ("busy", ROUNDS.to_string()));
    assert_parked(server.commit_end().await);
}

/// A timer of the function's own that ends together with what the run waits for does not make it hang.
#[tokio::test(start_paused = true)]
async fn a_function_that_is_woken_while_it_would_park_is_polled_first() {
    let mut server = ScriptedServer::execute(assign("0", vec![]), |ctx, _| async move {
        let step = ctx.run("step", async { Ok(1_u64) });
        let (step, ()) = tokio::join!(step, tokio::time::sleep(Duration::from_secs(1)));
        step
    });

    assert_eq!(recorded(server.commit().await).0, "step");
    assert_eq!(run_output(server.commit_end().await), 1);
}
