//! E-mail, against a mail server on loopback that speaks the real protocol.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use kagzi_model::Timestamp;
use kagzi_notices::{
    Audience, Contact, Courier, Facts, Occasion, Outcome, Parcel, Texts, Values,
    email::{EmailCourier, EmailSettings},
    fixture::{AUTHORITY_PEM, MailServer, MailTrouble, Security},
};

const ID: &str = "0199a0b2-7c1e-7d33-a5f0-6f1f3c1d2e4f/asked/0/Ada Lovelace/email";
const WIRE_ID: &str = "0199a0b2-7c1e-7d33-a5f0-6f1f3c1d2e4f/asked/0/Ada%20Lovelace/email";

fn parcel(title: &str) -> Parcel {
    let facts = Facts {
        namespace: "shop".into(),
        question: "q-1".into(),
        kind: "approval".into(),
        title: title.into(),
        ..Facts::default()
    };
    let contact =
        Contact { name: "Ada Lovelace".into(), email: Some("ada@example.org".into()), ..Contact::default() };
    let audience = Audience {
        recipient: &contact.name,
        time_zone: &TimeZone::UTC,
        payloads_allowed: false,
        console_url: Some("https://kagzi.example.org"),
    };
    let message = Texts::built_in().message(Occasion::Asked, &Values::of(Occasion::Asked, &facts, &audience));
    let created_at = Timestamp(1_777_000_000_000_000);
    Parcel { id: ID.into(), occasion: Occasion::Asked, contact, facts, message, created_at }
}

fn courier(smtp_url: String) -> EmailCourier {
    let settings = EmailSettings {
        smtp_url,
        from: "Kagzi <kagzi@example.com>".into(),
        authority_pem: Some(AUTHORITY_PEM.to_vec()),
    };
    EmailCourier::new(&settings).expect("the settings are good")
}

async fn clear() -> (MailServer, EmailCourier) {
    let server = MailServer::start(Security::Clear, None).await;
    let courier = courier(format!("smtp://localhost:{}?tls=none", server.address.port()));
    (server, courier)
}

fn why(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Taken => "taken",
        Outcome::Temporary { why, .. } | Outcome::Permanent { why } => why,
    }
}

#[tokio::test]
async fn a_letter_has_both_parts_its_id_its_date_and_one_recipient() {
    let (server, courier) = clear().await;
    let parcel = parcel("Refund order 42");

    assert_eq!(courier.carry(&parcel).await, Outcome::Taken);

    let [letter] = &server.letters()[..] else { panic!("one letter: {:?}", server.letters()) };
    assert_eq!(
        (letter.from.as_str(), &letter.to[..]),
        ("kagzi@example.com", &["ada@example.org".to_owned()][..])
    );
    assert_eq!(letter.header("Subject").as_deref(), Some("Your answer is needed: Refund order 42"));
    assert_eq!(letter.header("Message-ID"), Some(format!("<{WIRE_ID}@example.com>")));
    assert_eq!(letter.header("Date").as_deref(), Some("Fri, 24 Apr 2026 03:06:40 +0000"));
    assert_eq!(letter.header("From").as_deref(), Some("Kagzi <kagzi@example.com>"));
    assert_eq!(letter.header("To").as_deref(), Some("\"Ada Lovelace\" <ada@example.org>"));
    assert_eq!(letter.header("Auto-Submitted").as_deref(), Some("auto-generated"));
    assert_eq!(letter.header("Kagzi-Notice-Id").as_deref(), Some(WIRE_ID));
    assert!(letter.header("Content-Type").unwrap().starts_with("multipart/alternative"));
    assert!(letter.data.contains("Content-Type: text/plain; charset=utf-8"), "{}", letter.data);
    assert!(letter.data.contains("Content-Type: text/html; charset=utf-8"), "{}", letter.data);
}

#[tokio::test]
async fn every_try_of_a_message_has_the_same_id_and_date() {
    let (server, courier) = clear().await;
    let parcel = parcel("Refund");
    server.set_trouble(Some(MailTrouble::ClosesAfterTheLetter));

    // The server has the letter, and nobody can know: so it is sent again, and can be recognised.
    let broken_off = courier.carry(&parcel).await;
    server.set_trouble(None);
    let again = courier.carry(&parcel).await;

    assert!(matches!(broken_off, Outcome::Temporary { .. }), "{broken_off:?}");
    assert_eq!(again, Outcome::Taken);
    let letters = server.letters();
    assert_eq!(letters.len(), 2);
    for header in ["Message-ID", "Date", "Subject", "To"] {
        assert_eq!(letters[0].header(header), letters[1].header(header), "{header}");
    }
}

#[tokio::test]
async fn no_title_adds_a_header_a_recipient_or_a_letter() {
    let (server, courier) = clear().await;
    let hostile = [
        "Refund\r\nBcc: eve@example.org",
        "Refund\nX-Evil: 1",
        "Refund\r\n.\r\nMAIL FROM:<eve@example.org>\r\nRCPT TO:<eve@example.org>",
        "Refund\r\n\r\n<h1>body</h1>",
        "\u{202e}dnufeR\u{85}Bcc: eve@example.org",
        &"x".repeat(100_000),
    ];
    for title in hostile {
        let mut parcel = parcel(title);
        parcel.contact.name = title.into();

        let outcome = courier.carry(&parcel).await;

        assert_eq!(outcome, Outcome::Taken, "{title:.60}");
        let letter = server.letters().pop().unwrap();
        assert_eq!(letter.to, ["ada@example.org"]);
        assert_eq!((letter.header("Bcc"), letter.header("X-Evil")), (None, None), "{}", letter.data);
        assert!(!letter.data.contains("\r\n<h1>"), "{}", letter.data);
        assert!(letter.data.lines().all(|line| line.len() <= 998), "a line is too long for mail");
    }
    assert_eq!(server.letters().len(), hostile.len());
}

#[tokio::test]
async fn a_subject_in_any_script_arrives_as_it_was() {
    let (server, courier) = clear().await;

    courier.carry(&parcel("Überweisung prüfen: 返金")).await;

    let subject = server.letters()[0].header("Subject").unwrap();
    assert!(subject.is_ascii() && subject.contains("=?utf-8?b?"), "{subject}");
    assert!(!server.letters()[0].data.contains('ü'), "the letter is plain on its way");
}

#[tokio::test]
async fn starttls_and_tls_are_encrypted_and_log_in() {
    let login = Some(("ada", "p@ss/word"));
    for (security, scheme) in [(Security::StartTls, "smtp"), (Security::Tls, "smtps")] {
        let server = MailServer::start(security, login).await;
        let port = server.address.port();
        let courier = courier(format!("{scheme}://ada:p%40ss%2Fword@localhost:{port}"));

        let outcome = courier.carry(&parcel("Refund")).await;

        assert_eq!(outcome, Outcome::Taken, "{security:?}");
        let letter = &server.letters()[0];
        assert!(letter.encrypted);
        assert_eq!(letter.user.as_deref(), Some("ada"));
    }
}

#[tokio::test]
async fn a_server_without_starttls_gets_neither_password_nor_letter() {
    let server = MailServer::start(Security::Clear, Some(("ada", "sesame"))).await;
    let courier = courier(format!("smtp://ada:sesame@localhost:{}", server.address.port()));

    let outcome = courier.carry(&parcel("Refund")).await;

    assert!(matches!(outcome, Outcome::Temporary { .. }), "{outcome:?}");
    assert!(!why(&outcome).contains("sesame"), "{outcome:?}");
    assert_eq!(server.letters(), []);
}

#[tokio::test]
async fn a_certificate_of_a_stranger_is_not_believed() {
    let server = MailServer::start(Security::Tls, None).await;
    let settings = EmailSettings {
        smtp_url: format!("smtps://localhost:{}", server.address.port()),
        from: "kagzi@example.com".into(),
        authority_pem: None,
    };
    let courier = EmailCourier::new(&settings).unwrap();

    let outcome = courier.carry(&parcel("Refund")).await;

    assert!(matches!(outcome, Outcome::Temporary { .. }), "{outcome:?}");
    assert_eq!(server.letters(), []);
}

#[tokio::test]
async fn what_may_pass_is_temporary_and_what_concerns_the_recipient_is_not() {
    let (server, courier) = clear().await;
    let expected: BTreeMap<u16, bool> =
        BTreeMap::from([(421, true), (450, true), (451, true), (452, true), (550, false), (553, false)]);
    for (code, temporary) in expected {
        server.set_trouble(Some(MailTrouble::Refuses(code)));

        let outcome = courier.carry(&parcel("Refund")).await;

        assert_eq!(matches!(outcome, Outcome::Temporary { .. }), temporary, "{code}: {outcome:?}");
        assert_eq!(matches!(outcome, Outcome::Permanent { .. }), !temporary, "{code}: {outcome:?}");
        assert!(why(&outcome).contains(&code.to_string()), "{outcome:?}");
        assert!(why(&outcome).contains("not for ada@example.org"), "{outcome:?}");
    }
    assert_eq!(server.letters(), []);
}

#[tokio::test]
async fn a_wrong_password_is_tried_again_because_somebody_can_mend_it() {
    let server = MailServer::start(Security::StartTls, Some(("ada", "sesame"))).await;
    let courier = courier(format!("smtp://ada:wrong-one@localhost:{}", server.address.port()));

    let outcome = courier.carry(&parcel("Refund")).await;

    assert!(matches!(outcome, Outcome::Temporary { .. }), "{outcome:?}");
    assert!(why(&outcome).contains("535") && !why(&outcome).contains("wrong-one"), "{outcome:?}");
}

#[tokio::test]
async fn a_server_that_closes_or_is_gone_is_tried_again() {
    let (server, courier) = clear().await;
    server.set_trouble(Some(MailTrouble::Closes));

    let closed = courier.carry(&parcel("Refund")).await;
    drop(server);
    let gone = courier.carry(&parcel("Refund")).await;

    assert!(matches!(closed, Outcome::Temporary { .. }), "{closed:?}");
    assert!(matches!(gone, Outcome::Temporary { .. }), "{gone:?}");
}

/// Time is virtual here: it passes as soon as everybody waits.
#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_is_left() {
    let (server, courier) = clear().await;
    server.set_trouble(Some(MailTrouble::Hangs));
    let begun = tokio::time::Instant::now();

    let outcome = courier.carry(&parcel("Refund")).await;

    assert!(matches!(outcome, Outcome::Temporary { .. }), "{outcome:?}");
    assert!(begun.elapsed().as_secs() <= 25, "{:?}", begun.elapsed());
    assert_eq!(server.letters(), []);
}

#[tokio::test]
async fn a_contact_without_an_address_is_given_up() {
    let (server, courier) = clear().await;
    for email in [None, Some("nobody"), Some("a@b\r\nRCPT TO:<eve@example.org>"), Some("")] {
        let mut parcel = parcel("Refund");
        parcel.contact.email = email.map(str::to_owned);

        let outcome = courier.carry(&parcel).await;

        assert!(matches!(outcome, Outcome::Permanent { .. }), "{outcome:?}");
    }
    assert_eq!(server.connections(), 0);
}
