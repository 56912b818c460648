//! Payloads: one check, one limit and one sentence for every entrance.

use kagzi_engine::Engine;
use kagzi_model::{Name, Payload, check_name};
use kagzi_proto::{Reason, Refusal, v1};
use tonic::Status;
use tracing::warn;

use super::invalid;

/// How large payloads may be.
#[derive(Debug, Clone, Copy)]
pub struct PayloadLimits {
    pub warn_bytes: usize,
    pub max_bytes: usize,
}

impl PayloadLimits {
    /// The limits in force: the engine's settings are their only source.
    pub fn of(engine: &Engine) -> PayloadLimits {
        let settings = engine.settings();
        PayloadLimits { warn_bytes: settings.payload_warn_bytes, max_bytes: settings.payload_max_bytes }
    }
}

/// A payload within the limit. Its bytes are nobody's business: they are neither parsed nor copied.
pub fn payload(limits: PayloadLimits, field: &str, payload: Option<v1::Payload>) -> Result<Payload, Status> {
    let v1::Payload { data, content_type } = payload.unwrap_or_default();
    let size = data.len();
    if size > limits.max_bytes {
        return Err(too_large(field, size, limits.max_bytes));
    }
    if size > limits.warn_bytes {
        let threshold = limits.warn_bytes;
        warn!(
            context = field,
            size_bytes = size,
            "payload exceeds {threshold} bytes; consider storing large data externally"
        );
    }
    if !content_type.is_empty() {
        check_name(&content_type)
            .map_err(|rule| invalid("content_type", &content_type, format_args!("it {rule}")))?;
    }
    Ok(Payload { data, content_type: Name::from(content_type) })
}

/// The refusal of something oversize.
pub fn too_large(field: &str, size: usize, max_bytes: usize) -> Status {
    let message = format!(
        "{field} exceeds maximum size of {max_bytes} bytes ({size} bytes). Do not use Kagzi for blob \
         storage. \
         Store large data elsewhere and pass a reference."
    );
    let refusal = Refusal::new(Reason::PayloadTooLarge, message).field(field, "it is too large");
    refusal.with("size_bytes", size).with("limit_bytes", max_bytes).status()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(size: usize) -> Option<v1::Payload> {
        Some(v1::Payload { data: vec![0xff; size].into(), content_type: "application/x-noise".into() })
    }

    #[test]
    fn payload_limits_are_exact_and_the_refusal_names_field_limit_and_size() {
        let limits = PayloadLimits { warn_bytes: 1, max_bytes: 3 };

        let kept = payload(limits, "input", of(3)).unwrap();
        assert_eq!((kept.data.as_ref(), &*kept.content_type), (&[0xff; 3][..], "application/x-noise"));
        let refused = payload(limits, "input", of(4)).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument);
        let text = "input exceeds maximum size of 3 bytes (4 bytes). Do not use Kagzi for blob storage.";
        assert!(refused.message().starts_with(text), "{refusal}", refusal = refused.message());
        assert_eq!(Reason::of(&refused), Some(Reason::PayloadTooLarge));
    }

    #[test]
    fn a_senseless_content_type_is_another_kind_of_refusal() {
        let limits = PayloadLimits { warn_bytes: 1, max_bytes: 3 };
        let named = Some(v1::Payload { content_type: "a\nb".into(), ..Default::default() });

        let refused = payload(limits, "input", named).unwrap_err();

        assert!(refused.message().starts_with("content_type is"), "{}", refused.message());
        assert_eq!(Reason::of(&refused), Some(Reason::FieldInvalid));
    }
}
