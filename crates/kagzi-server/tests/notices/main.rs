//! From a question in a workflow to a letter and a webhook, through a real server and real receivers.

mod stage;

use std::collections::BTreeSet;

use kagzi_notices::fixture::{MailTrouble, WebTrouble};
use stage::{SECRET, Stage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_who_is_asked_is_told_once_and_told_when_it_is_over() {
    let stage = Stage::new().await;
    let run = stage.client.workflow("refund", "refunds", 12).await.unwrap();

    let question = stage.question().await;
    // What is written down counts: a question that closes in between would silence what was just sent.
    stage
        .until("two letters and a webhook", async || {
            let notices = stage.notices(&question).await;
            notices.iter().all(|notice| notice.state == "sent").then_some(())
        })
        .await;
    stage.approve(&question, "ada").await;
    let approved: bool = run.result().await.unwrap();
    stage
        .until("nothing waits to be sent", async || {
            let notices = stage.notices(&question).await;
            notices.iter().all(|notice| notice.state == "sent").then_some(())
        })
        .await;

    assert!(approved);
    let subject = |letter: &kagzi_notices::fixture::Letter| {
        (letter.to.join(","), letter.header("Subject").unwrap_or_default())
    };
    let letters: Vec<_> = stage.mail.letters().iter().map(subject).collect();
    let told: BTreeSet<_> = letters.iter().cloned().collect();
    assert_eq!(told.len(), letters.len(), "each letter once: {letters:?}");
    for to in ["ada@example.org", "grace@example.org"] {
        assert!(told.contains(&(to.into(), "Your answer is needed: Refund 12 cents".into())), "{told:?}");
    }
    let over = ("grace@example.org".to_owned(), "No longer needed: Refund 12 cents".to_owned());
    assert!(told.contains(&over), "{told:?}");
    let ids: BTreeSet<_> =
        stage.mail.letters().iter().filter_map(|letter| letter.header("Message-ID")).collect();
    assert_eq!(ids.len(), letters.len(), "{ids:?}");
    assert!(!stage.mail.letters().iter().any(|letter| letter.data.contains("a payload")), "payloads stay");
    let link = format!("https://kagzi.example.org/n/default/inbox/{question}");
    let text = stage.mail.letters()[0].data.replace("=\r\n", "");
    assert!(text.contains(&link), "{text}");
    for posted in stage.web.posted() {
        assert_eq!(posted.line, "POST /grace HTTP/1.1");
        let signature = posted.header("kagzi-signature").unwrap();
        assert!(signature.starts_with("t="), "{signature}");
        assert!(!posted.body.contains("a payload") && !posted.body.contains(SECRET));
    }
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_receivers_are_down_no_run_notices_and_the_state_is_visible() {
    let stage = Stage::new().await;
    stage.mail.set_trouble(Some(MailTrouble::Refuses(451)));
    stage.web.set_trouble(Some(WebTrouble::Answers(500, String::new())));
    let run = stage.client.workflow("refund", "refunds", 12).await.unwrap();

    let question = stage.question().await;
    let tried = stage.until("each was tried in vain", async || {
        let notices = stage.notices(&question).await;
        let outside = notices.into_iter().filter(|notice| notice.channel != "in_app").collect::<Vec<_>>();
        outside.iter().all(|notice| notice.state == "retrying").then_some(outside)
    });
    let tried = tried.await;
    stage.approve(&question, "grace").await;
    let approved: bool = run.result().await.unwrap();

    assert!(approved, "the run goes on");
    assert_eq!(tried.len(), 3, "two letters and a webhook: {tried:?}");
    for notice in tried {
        let expected = if notice.channel == "email" { "451" } else { "status 500" };
        assert!(notice.last_error.contains(expected), "{notice:?}");
        assert!(notice.attempts >= 1 && notice.next_at.is_some(), "{notice:?}");
    }
    let left = stage.notices(&question).await;
    let asked = left.iter().filter(|notice| notice.channel != "in_app" && notice.message == "asked");
    assert!(asked.into_iter().all(|notice| notice.state == "suppressed"), "{left:?}");
    assert_eq!(stage.mail.letters(), []);
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mailbox_that_does_not_exist_is_given_up_with_its_reason() {
    let stage = Stage::new().await;
    stage.mail.set_trouble(Some(MailTrouble::Refuses(550)));
    stage.client.workflow("refund", "refunds", 12).await.unwrap();

    let question = stage.question().await;
    let given_up = stage.until("both letters are given up", async || {
        let notices = stage.notices(&question).await;
        let letters = notices.into_iter().filter(|notice| notice.channel == "email").collect::<Vec<_>>();
        letters.iter().all(|notice| notice.state == "given_up").then_some(letters)
    });
    let given_up = given_up.await;

    assert!(given_up.iter().all(|notice| notice.last_error.contains("550")), "{given_up:?}");
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_server_that_hangs_delays_no_webhook_and_no_restart() {
    let mut stage = Stage::new().await;
    stage.mail.set_trouble(Some(MailTrouble::Hangs));
    stage.client.workflow("refund", "refunds", 12).await.unwrap();

    let question = stage.question().await;
    stage.until("the webhook is there", async || (!stage.web.posted().is_empty()).then_some(())).await;
    let letters_before = stage.mail.letters().len();
    stage.restart().await;

    assert_eq!(letters_before, 0);
    let notices = stage.notices(&question).await;
    let sent = notices.iter().filter(|notice| notice.channel == "webhook" && notice.state == "sent");
    assert_eq!(sent.count(), 1, "{notices:?}");
    assert_eq!(stage.web.posted().len(), 1, "the restart sent nothing again");
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contact_without_an_address_of_its_own_gets_the_servers_webhook_when_it_asks_for_one() {
    let stage = Stage::new().await;
    let contact = kagzi_proto::v1::Contact {
        name: "ada".into(),
        channels: vec!["webhook".into()],
        ..Default::default()
    };
    stage.contact(contact).await;
    stage.client.workflow("refund", "refunds", 12).await.unwrap();

    stage.question().await;
    stage.until("both webhooks are there", async || (stage.web.posted().len() >= 2).then_some(())).await;

    let lines: BTreeSet<_> = stage.web.posted().into_iter().map(|posted| posted.line).collect();
    let expected = ["POST /everybody HTTP/1.1", "POST /grace HTTP/1.1"];
    assert_eq!(lines, expected.map(String::from).into());
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_has_its_own_texts_and_payloads_only_where_it_says_so() {
    let stage = Stage::new().await;
    let namespace = "open";
    let contact = kagzi_proto::v1::Contact {
        name: "ada".into(),
        email: "ada@example.org".into(),
        ..Default::default()
    };
    let request =
        kagzi_proto::v1::PutContactRequest { namespace_id: namespace.into(), contact: Some(contact) };
    let (client, _working) = stage.another_namespace(namespace).await;
    stage.inbox.clone().put_contact(request).await.unwrap();
    client.workflow("refund", "refunds", 7).await.unwrap();
    stage.client.workflow("refund", "refunds", 12).await.unwrap();

    stage.until("three letters", async || (stage.mail.letters().len() >= 3).then_some(())).await;

    for letter in stage.mail.letters() {
        let own = letter.header("Subject").as_deref() == Some("[open] Refund 7 cents");
        assert_eq!(own, letter.data.contains("a payload"), "{}", letter.data);
    }
    stage.close().await;
}
