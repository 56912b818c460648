//! Checks of the ids that callers choose for runs.

use kagzi_model::Name;
use tonic::Status;

use super::{invalid, optional_name};

/// A business id that a caller may choose, or none.
pub fn business_id(value: &str) -> Result<Option<Name>, Status> {
    if let Some(what) = kagzi_model::reserved(value) {
        let rule = format!("it is {what}, which only the server gives; choose another one");
        return Err(invalid("business_id", value, rule));
    }
    optional_name("business_id", value)
}
