//! The contract's enums are the catalogue's: the same numbers under the same names, none missing on either
//! side. The words of `reason` fields, which are strings, stand in comments of the contract.

use kagzi_catalogue::{Backoff, Reason, Status, StepStatus};
use kagzi_proto::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_types::FileDescriptorSet;

/// Number and name of every value of an enum of the contract but "unspecified".
fn declared(name: &str) -> Vec<(i32, String)> {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("descriptors");
    let enums = set.file.iter().flat_map(|file| &file.enum_type);
    let found = enums.into_iter().find(|found| found.name() == name).expect("an enum of the contract");
    let values = found.value.iter().filter(|value| value.number() != 0);
    values.map(|value| (value.number(), value.name().to_owned())).collect()
}

#[test]
fn the_contracts_enums_have_the_numbers_and_names_of_the_catalogue() {
    let statuses = Status::ALL.map(|status| (status as i32, format!("WORKFLOW_STATUS_{}", status.name())));
    let steps = StepStatus::ALL.map(|status| (status as i32, format!("STEP_STATUS_{}", status.name())));
    let backoffs =
        Backoff::ALL.map(|shape| (shape as i32, format!("BACKOFF_{}", shape.name().to_uppercase())));

    assert_eq!(declared("WorkflowStatus"), statuses);
    assert_eq!(declared("StepStatus"), steps);
    assert_eq!(declared("Backoff"), backoffs);
}

#[test]
fn the_contracts_comments_list_every_reason_to_wake() {
    let words = Reason::ALL.map(Reason::name).join(", ");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto/kagzi/v1");
    for (file, times) in [("common.proto", 1), ("workflow.proto", 2)] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        assert_eq!(text.matches(&words).count(), times, "{file} says: {words}");
    }
}
