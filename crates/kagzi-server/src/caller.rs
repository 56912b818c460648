//! Who calls, as far as it is known: what the caller says about itself in the metadata of its call. Nobody
//! proves it yet; what people order is written down with it.

use kagzi_model::check_name;
use tonic::metadata::MetadataMap;

/// The key of the metadata that names the caller.
const KEY: &str = "kagzi-caller";

/// Who has not said who it is.
const UNKNOWN: &str = "unknown";

tokio::task_local! {
    static CALLER: String;
}

/// Answers a call of whoever the metadata name. Every handler below can ask [`name`] without being handed it.
pub async fn of<F: Future>(metadata: &MetadataMap, call: F) -> F::Output {
    let named = metadata.get(KEY).and_then(|name| name.to_str().ok()).filter(|name| check_name(name).is_ok());
    CALLER.scope(named.unwrap_or(UNKNOWN).to_owned(), call).await
}

/// Who calls.
pub fn name() -> String {
    CALLER.try_with(|caller| caller.clone()).unwrap_or_else(|_| UNKNOWN.to_owned())
}
