//! Webhooks, against a web server on loopback.

use std::time::Duration;

use kagzi_model::Timestamp;
use kagzi_notices::{
    Contact, Courier, Facts, Message, Occasion, Outcome, Parcel, Severity,
    fixture::{AUTHORITY_PEM, WebReceiver, WebTrouble},
    webhook::{WebhookCourier, WebhookSettings, body},
};
use serde_json::Value;

const SECRET: &str = "a secret that both know";

fn parcel() -> Parcel {
    let facts = Facts {
        namespace: "shop".into(),
        question: "0199a0b2-7c1e-7d33-a5f0-6f1f3c1d2e4f".into(),
        kind: "error_resolution".into(),
        title: "Refund failed".into(),
        run: "run-1".into(),
        severity: Some(Severity::Critical),
        due_at: Some(Timestamp(1_777_000_000_000_000)),
        message: "a payload".into(),
        details: "another payload".into(),
        ..Facts::default()
    };
    Parcel {
        id: "0199a0b2-7c1e-7d33-a5f0-6f1f3c1d2e4f/incident/0/ada@home/webhook".into(),
        occasion: Occasion::Incident,
        contact: Contact { name: "ada".into(), ..Contact::default() },
        facts,
        message: Message {
            subject: "Incident (critical): Refund failed".into(),
            text: "Something went wrong <!channel> & more".into(),
            html: String::new(),
        },
        created_at: Timestamp(1_777_000_000_000_000),
    }
}

fn settings(url: String) -> WebhookSettings {
    WebhookSettings {
        url: Some(url),
        secret: Some(SECRET.into()),
        authority_pem: Some(AUTHORITY_PEM.to_vec()),
        ..WebhookSettings::default()
    }
}

fn courier(receiver: &WebReceiver) -> WebhookCourier {
    WebhookCourier::new(&settings(receiver.url("/hooks/kagzi?room=1"))).expect("the settings are good")
}

#[tokio::test]
async fn a_message_is_posted_once_and_its_receiver_can_verify_it() {
    for encrypted in [false, true] {
        let receiver = WebReceiver::start(encrypted).await;

        let outcome = courier(&receiver).carry(&parcel()).await;

        assert_eq!(outcome, Outcome::Taken);
        let [posted] = &receiver.posted()[..] else { panic!("one request: {:?}", receiver.posted()) };
        assert_eq!(posted.line, "POST /hooks/kagzi?room=1 HTTP/1.1");
        assert_eq!(posted.header("content-type"), Some("application/json"));
        assert_eq!(
            posted.header("kagzi-notice-id"),
            Some("0199a0b2-7c1e-7d33-a5f0-6f1f3c1d2e4f/incident/0/ada%40home/webhook")
        );
        let host = format!("localhost:{}", receiver.address.port());
        assert_eq!(posted.header("host"), Some(host.as_str()));
        let signature = posted.header("kagzi-signature").unwrap();
        let verified = kagzi::webhook::verify(SECRET, signature, posted.body.as_bytes());
        assert_eq!(verified, Ok(()));
        let forged = kagzi::webhook::verify("another secret, as long", signature, posted.body.as_bytes());
        assert!(forged.is_err());
    }
}

#[test]
fn the_body_is_the_one_that_was_reviewed() {
    let shown = serde_json::to_string_pretty(&body(&parcel(), Some("R0UTING"))).unwrap();

    insta::assert_snapshot!(shown);
    assert!(!shown.contains("payload\": \"a"), "payloads stay at home");
    assert!(!shown.contains("another payload"));
}

#[test]
fn an_alarm_ends_under_the_key_under_which_it_began() {
    let of = |occasion| body(&Parcel { occasion, id: occasion.name().into(), ..parcel() }, None);
    for occasion in Occasion::ALL {
        let body = of(occasion);

        assert_eq!(body["dedup_key"], of(Occasion::Asked)["dedup_key"]);
        let ends = [Occasion::NoLongerNeeded, Occasion::ActionCancelled].contains(&occasion);
        assert_eq!(body["event_action"], if ends { "resolve" } else { "trigger" });
        assert_eq!(body.get("routing_key"), None);
        assert!(matches!(&body["text"], Value::String(text) if !text.contains("<!channel>")));
    }
}

#[tokio::test]
async fn answers_are_judged_by_what_can_be_done_about_them() {
    let receiver = WebReceiver::start(false).await;
    let courier = courier(&receiver);
    for status in [200, 201, 202, 204, 299] {
        receiver.set_trouble(Some(WebTrouble::Answers(status, String::new())));
        assert_eq!(courier.carry(&parcel()).await, Outcome::Taken, "{status}");
    }
    for status in [301, 302, 307, 308, 401, 403, 404, 408, 425, 429, 500, 502, 503, 504] {
        receiver.set_trouble(Some(WebTrouble::Answers(status, String::new())));
        let outcome = courier.carry(&parcel()).await;
        let Outcome::Temporary { why, after_ms: None } = &outcome else { panic!("{status}: {outcome:?}") };
        assert!(why.starts_with(&format!("status {status}: because")), "{why}");
    }
    for status in [400, 405, 410, 413, 422] {
        receiver.set_trouble(Some(WebTrouble::Answers(status, String::new())));
        let outcome = courier.carry(&parcel()).await;
        assert!(matches!(outcome, Outcome::Permanent { .. }), "{status}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_redirect_leads_nowhere() {
    let (receiver, elsewhere) = (WebReceiver::start(false).await, WebReceiver::start(false).await);
    for status in [301, 302, 303, 307, 308] {
        let location = format!("location: {}\r\n", elsewhere.url("/"));
        receiver.set_trouble(Some(WebTrouble::Answers(status, location)));

        let outcome = courier(&receiver).carry(&parcel()).await;

        let Outcome::Temporary { why, .. } = &outcome else { panic!("{status}: {outcome:?}") };
        assert!(why.contains("redirects are not followed"), "{why}");
    }
    assert_eq!(elsewhere.posted(), []);
}

#[tokio::test]
async fn a_receiver_that_names_a_time_is_heard() {
    let receiver = WebReceiver::start(false).await;
    receiver.set_trouble(Some(WebTrouble::Answers(429, "retry-after: 120\r\n".into())));

    let outcome = courier(&receiver).carry(&parcel()).await;

    assert!(matches!(outcome, Outcome::Temporary { after_ms: Some(120_000), .. }), "{outcome:?}");
}

#[tokio::test]
async fn a_receiver_that_closes_or_is_gone_is_tried_again() {
    let receiver = WebReceiver::start(false).await;
    let courier = courier(&receiver);
    receiver.set_trouble(Some(WebTrouble::Closes));

    let closed = courier.carry(&parcel()).await;
    drop(receiver);
    let gone = courier.carry(&parcel()).await;

    assert!(matches!(closed, Outcome::Temporary { .. }), "{closed:?}");
    assert!(matches!(gone, Outcome::Temporary { .. }), "{gone:?}");
}

/// Time is virtual here: it passes as soon as everybody waits.
#[tokio::test(start_paused = true)]
async fn a_receiver_that_hangs_is_left_after_ten_seconds() {
    let receiver = WebReceiver::start(false).await;
    receiver.set_trouble(Some(WebTrouble::Hangs));
    let begun = tokio::time::Instant::now();

    let outcome = courier(&receiver).carry(&parcel()).await;

    assert_eq!(outcome, Outcome::temporary("localhost: no answer within 10 s"));
    assert!(begun.elapsed() <= Duration::from_secs(11), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn an_answer_that_never_ends_is_an_answer() {
    let receiver = WebReceiver::start(false).await;
    receiver.set_trouble(Some(WebTrouble::NeverEnds));

    let outcome = courier(&receiver).carry(&parcel()).await;

    assert_eq!(outcome, Outcome::Taken);
}

#[tokio::test]
async fn a_certificate_of_a_stranger_is_not_believed() {
    let receiver = WebReceiver::start(true).await;
    let settings = WebhookSettings { authority_pem: None, ..settings(receiver.url("/")) };

    let outcome = WebhookCourier::new(&settings).unwrap().carry(&parcel()).await;

    assert!(matches!(outcome, Outcome::Temporary { .. }), "{outcome:?}");
    assert_eq!(receiver.posted(), []);
}

#[tokio::test]
async fn a_contact_chooses_among_the_hosts_that_an_operator_named() {
    let (standard, own) = (WebReceiver::start(false).await, WebReceiver::start(false).await);
    let mut parcel = parcel();
    parcel.contact.webhook = Some(format!("http://127.0.0.1:{}/ada", own.address.port()));

    let refused = courier(&standard).carry(&parcel).await;
    let before = own.posted().len();
    let named = WebhookSettings { hosts: vec!["127.0.0.1".into()], ..settings(standard.url("/")) };
    let allowed = WebhookCourier::new(&named).unwrap().carry(&parcel).await;

    let Outcome::Permanent { why } = refused else { panic!("{refused:?}") };
    assert_eq!(why, "the contact's webhook names 127.0.0.1, which is not in notify.webhook_hosts");
    assert_eq!((before, allowed), (0, Outcome::Taken));
    assert_eq!(own.posted()[0].line, "POST /ada HTTP/1.1");
    assert_eq!(standard.posted(), []);
}

#[tokio::test]
async fn nothing_is_posted_to_the_clouds_secrets_whatever_an_operator_wrote() {
    for url in ["http://169.254.169.254/latest/meta-data", "http://[fd00:ec2::254]/", "http://0.0.0.0:1/"] {
        let outcome = WebhookCourier::new(&settings(url.into())).unwrap().carry(&parcel()).await;

        let Outcome::Temporary { why, .. } = &outcome else { panic!("{url}: {outcome:?}") };
        assert!(why.ends_with("the host has no address that messages may be sent to"), "{why}");
    }
}

#[test]
fn settings_under_which_nothing_could_be_sent_are_refused_without_their_secret() {
    let refused = |settings: WebhookSettings| match WebhookCourier::new(&settings) {
        Ok(_) => panic!("it was taken"),
        Err(error) => error.to_string(),
    };

    let login = refused(settings("https://ada:sesame@example.org/".into()));
    let scheme = refused(settings("ftp://example.org/sesame".into()));
    let short =
        refused(WebhookSettings { secret: Some("sesame".into()), ..settings("https://a.example/".into()) });
    let pem = refused(WebhookSettings {
        authority_pem: Some(b"sesame".to_vec()),
        ..settings("https://a.example/".into())
    });

    assert!(login.starts_with("notify.webhook_url: it must hold no user"), "{login}");
    assert!(scheme.starts_with("notify.webhook_url: it must begin with"), "{scheme}");
    assert!(short.starts_with("notify.webhook_secret: it must have at least 16"), "{short}");
    assert!(pem.starts_with("notify.ca_file: it holds no certificate"), "{pem}");
    assert!([login, scheme, short, pem].iter().all(|said| !said.contains("sesame")));
}
