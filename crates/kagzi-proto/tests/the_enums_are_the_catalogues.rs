//! The contract's enums are the catalogue's: the same numbers under the same names, none missing on either
//! side. The words of `reason` fields, which are strings, stand in comments of the contract.
//!
//! Its name comes after that of the test that writes the generated code, so that a new number is written
//! before it is compared.

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
fn every_reason_to_wake_has_a_number_in_the_contract() {
    let mut declared: Vec<_> = declared("WaitReason").into_iter().map(|(_, name)| name).collect();
    declared.retain(|name| name != "WAIT_REASON_UNREADABLE");
    let mut reasons = Reason::ALL.map(|reason| format!("WAIT_REASON_{}", reason.name().to_uppercase()));
    declared.sort();
    reasons.sort();

    assert_eq!(declared, reasons);
}
