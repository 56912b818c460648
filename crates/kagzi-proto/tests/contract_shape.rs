//! Rules that every message of the contract keeps, read from its descriptors: a new one is held to them
//! without anybody remembering it.

use kagzi_proto::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

/// Messages that grow between blocks of numbers: 30 and later name what is executed, 40 and later the
/// schedule, 50 and later the trace.
const GROWING: [&str; 3] = ["WorkflowRun", "PollActivityResponse", "Assign"];

/// Lists whose rows are computed or belong to one run: no row of theirs can be unreadable by itself.
const WITHOUT_ROWS_OF_THEIR_OWN: [&str; 3] = ["ListQueues", "ListRunEvents", "ListStepAttempts"];

/// Texts with these names are closed sets: they are enums.
const CLOSED: [&str; 7] = ["status", "kind", "finality", "preset", "order", "overlap", "policy"];

fn files() -> Vec<FileDescriptorProto> {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    set.file.into_iter().filter(|file| file.package() == "kagzi.v1").collect()
}

fn messages() -> Vec<DescriptorProto> {
    files().into_iter().flat_map(|file| file.message_type).collect()
}

fn field<'m>(message: &'m DescriptorProto, name: &str) -> Option<&'m FieldDescriptorProto> {
    message.field.iter().find(|field| field.name() == name)
}

#[test]
fn every_list_has_the_same_shape() {
    let messages = messages();
    let message = |name: String| messages.iter().find(|it| it.name() == name).expect("it is declared");
    let methods = files().into_iter().flat_map(|file| file.service).flat_map(|service| service.method);
    let lists: Vec<String> =
        methods.map(|it| it.name().to_owned()).filter(|name| name.starts_with("List")).collect();
    assert!(lists.len() >= 7, "{lists:?}");

    for list in lists {
        let (request, response) = (message(format!("{list}Request")), message(format!("{list}Response")));
        let asked = [("page_size", Type::Int32), ("page_token", Type::String), ("include_total", Type::Bool)];
        let told = [
            ("next_page_token", Type::String),
            ("prev_page_token", Type::String),
            ("total_count", Type::Uint64),
            ("total_capped", Type::Bool),
        ];
        let unreadable = [("unreadable_count", Type::Uint32)];
        let unreadable = unreadable.iter().filter(|_| !WITHOUT_ROWS_OF_THEIR_OWN.contains(&list.as_str()));
        for (name, kind) in asked {
            assert_eq!(field(request, name).map(|it| it.r#type()), Some(kind), "{list}Request.{name}");
        }
        for (name, kind) in told.iter().chain(unreadable) {
            assert_eq!(field(response, name).map(|it| it.r#type()), Some(*kind), "{list}Response.{name}");
        }
        let rows = response.field.iter().filter(|it| it.label() == Label::Repeated).count();
        assert_eq!((rows, response.field[0].number()), (1, 1), "{list}Response has its rows first");
    }
}

#[test]
fn a_gap_in_the_numbers_is_reserved() {
    for message in messages().iter().filter(|it| !GROWING.contains(&it.name())) {
        let used: Vec<i32> = message.field.iter().map(FieldDescriptorProto::number).collect();
        let reserved = |number: i32| {
            message.reserved_range.iter().any(|range| (range.start()..range.end()).contains(&number))
        };
        let last = used.iter().copied().max().unwrap_or(0);
        let open: Vec<i32> =
            (1..last).filter(|number| !used.contains(number) && !reserved(*number)).collect();

        assert!(open.is_empty(), "{}: reserve {open:?}, or go on behind {last}", message.name());
    }
}

#[test]
fn closed_sets_are_enums_and_begin_with_nothing_said() {
    for message in messages() {
        for field in message.field.iter().filter(|field| field.r#type() == Type::String) {
            let closed = CLOSED.contains(&field.name());
            assert!(!closed, "{}.{} is a text and should be an enum", message.name(), field.name());
        }
    }
    for set in files().into_iter().flat_map(|file| file.enum_type) {
        assert!(
            set.value[0].name().ends_with("_UNSPECIFIED") && set.value[0].number() == 0,
            "{}",
            set.name()
        );
    }
}

#[test]
fn what_is_gone_is_reserved_by_its_name() {
    for list in ["ListWorkflowRunsResponse", "ListRunEventsResponse"] {
        let message = messages().into_iter().find(|it| it.name() == list).unwrap();
        assert_eq!(message.reserved_name, ["has_more"], "{list}");
    }
}
