//! The event catalogue: what is declared holds together, and the bytes are protobuf.

mod page;
mod protobuf;

use std::collections::HashSet;

use kagzi_model::{EventKind, Kind, Name, event::RecordFrame};

fn decoded(kind: &EventKind, frame: &RecordFrame) -> (EventKind, RecordFrame) {
    let mut record = Vec::new();
    kind.encode(frame, &mut record);
    EventKind::decode(kind.number(), &record)
}

#[test]
fn no_number_and_no_name_of_a_kind_or_field_is_used_twice() {
    let kinds = EventKind::KINDS;
    assert_eq!(kinds.iter().map(|kind| kind.number).collect::<HashSet<_>>().len(), kinds.len());
    assert_eq!(kinds.iter().map(|kind| kind.name).collect::<HashSet<_>>().len(), kinds.len());
    for kind in kinds {
        assert!((1..=254).contains(&kind.number), "{}: 0 and 255 are kept for what is no kind", kind.name);
        let numbers: HashSet<_> = kind.fields.iter().map(|field| field.number).collect();
        assert_eq!(numbers.len(), kind.fields.len(), "{}", kind.name);
        // The last three of those that need one byte only are the record's own.
        assert!(numbers.iter().all(|number| !(13..=15).contains(number)), "{}", kind.name);
    }
}

#[test]
fn the_level_of_this_version_is_that_of_its_newest_kind() {
    assert_eq!(EventKind::KINDS.iter().map(|kind| kind.level).max(), Some(EventKind::LEVEL));
    assert!(
        EventKind::samples().iter().zip(EventKind::KINDS).all(|(kind, known)| kind.level() == known.level)
    );
}

#[test]
fn every_kind_says_its_name_number_and_step_as_it_is_declared() {
    let samples = EventKind::samples();

    assert_eq!(samples.len(), EventKind::KINDS.len());
    for (sample, declared) in samples.iter().zip(EventKind::KINDS) {
        assert_eq!((sample.name(), sample.number()), (declared.name, declared.number));
        assert_eq!(sample.step().is_some(), declared.of_step, "{}", declared.name);
    }
    assert_eq!((Kind::StepCompleted as u8, Kind::RunCompleted as u8), (4, 13));
}

#[test]
fn every_kind_comes_back_from_its_bytes_and_from_json_as_it_was() {
    let frame = RecordFrame {
        at_offset_us: -7,
        content_type: Some(Name::from("text/plain")),
        payload_bytes: Some(0),
    };
    for kind in EventKind::samples() {
        assert_eq!(decoded(&kind, &frame), (kind.clone(), frame.clone()));
        assert_eq!(decoded(&kind, &RecordFrame::default()), (kind.clone(), RecordFrame::default()));
        assert_eq!(EventKind::from_json(&kind.to_json()).unwrap(), kind);
    }
}

#[test]
fn a_kind_that_is_not_known_here_is_kept_byte_for_byte_and_shown_as_its_number() {
    // A field of text, one that every record has, and the length of its payload.
    let record = b"\x0a\x02go\x68\x05\x78\x03";

    let (kind, frame) = EventKind::decode(200, record);

    assert_eq!((kind.name(), kind.number(), kind.step()), ("kind 200", 200, None));
    assert_eq!(kind.to_json(), r#"{"event":"kind 200","number":200,"record":"0a02676f68057803"}"#);
    assert_eq!((frame.at_offset_us, frame.payload_bytes), (5, Some(3)));
    let mut again = Vec::new();
    kind.encode(&frame, &mut again);
    assert_eq!(again, record);
}

#[test]
fn a_record_of_a_known_kind_that_is_damaged_is_kept_under_its_name_and_understood_by_nobody() {
    for damaged in [&b""[..], b"\x0a\x05ab", b"\xff\xff\xff", b"\x0a\x02\xff\xfe", b"\x08\x01"] {
        let (kind, _) = EventKind::decode(Kind::StepCompleted as u8, damaged);

        assert!(matches!(&kind, EventKind::Unknown { number: 4, .. }), "{kind:?}");
        assert_eq!(kind.name(), "step_completed");
    }
}

#[test]
fn a_field_that_only_a_later_version_knows_is_passed_over() {
    let sample = EventKind::samples().remove(0);
    let mut record = Vec::new();
    sample.encode(&RecordFrame::default(), &mut record);
    record.extend_from_slice(b"\xa2\x06\x02hi");

    assert_eq!(EventKind::decode(sample.number(), &record).0, sample);
}

#[test]
fn a_line_of_json_that_is_not_understood_is_kept_as_it_is_and_what_is_no_line_is_an_error() {
    let newer = r#"{"event":"signal_received","channel":"go"}"#;
    let damaged = r#"{"event":"step_completed"}"#;

    let kept = [newer, damaged].map(|detail| EventKind::from_json(detail).unwrap());

    assert_eq!(kept.each_ref().map(|kind| kind.name().to_owned()), ["signal_received", "step_completed"]);
    assert_eq!(kept.map(|kind| kind.to_json()), [newer, damaged]);
    assert!(EventKind::from_json("\u{1}\u{2}").is_err() && EventKind::from_json("{}").is_err());
}
