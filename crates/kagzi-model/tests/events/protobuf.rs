//! An ordinary protobuf library reads what the model writes, with nothing but the declared fields to go by.

use kagzi_model::{
    EventKind,
    event::{
        RecordFrame,
        wire::{Field, Proto},
    },
};
use prost_reflect::{DescriptorPool, DynamicMessage, Value, prost::Message as _};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

/// The declarations as a protobuf file. Proto2, where every field says whether it is there.
fn pool() -> DescriptorPool {
    let mut messages = Vec::new();
    for kind in EventKind::KINDS {
        let own = ["at_offset_us", "content_type", "payload_bytes"];
        let types = [Proto::Int64, Proto::String, Proto::Uint64];
        let frame = (13..).zip(own).zip(types);
        let mut fields = kind.fields.to_vec();
        fields.extend(frame.map(|((number, name), proto)| Field { number, name, meaning: "", proto }));
        add(&mut messages, kind.name, &fields);
    }
    let file = FileDescriptorProto {
        name: Some("events.proto".into()),
        syntax: Some("proto2".into()),
        message_type: messages,
        ..FileDescriptorProto::default()
    };
    DescriptorPool::from_file_descriptor_set(FileDescriptorSet { file: vec![file] }).unwrap()
}

fn add(messages: &mut Vec<DescriptorProto>, name: &str, fields: &[Field]) {
    let field = fields.iter().map(|field| {
        let (label, one) = match field.proto {
            Proto::Repeated(one) => (Label::Repeated, *one),
            one => (Label::Optional, one),
        };
        let inner = format!("{name}_{}", field.name);
        let kind = match one {
            Proto::Bool => Type::Bool,
            Proto::Int32 => Type::Int32,
            Proto::Int64 => Type::Int64,
            Proto::Uint32 => Type::Uint32,
            Proto::Uint64 => Type::Uint64,
            Proto::Double => Type::Double,
            Proto::String => Type::String,
            Proto::Bytes => Type::Bytes,
            Proto::Repeated(_) => panic!("protobuf has no lists of lists"),
            Proto::Message(fields) => {
                add(messages, &inner, fields);
                Type::Message
            }
        };
        FieldDescriptorProto {
            name: Some(field.name.to_owned()),
            number: Some(field.number.cast_signed()),
            label: Some(label.into()),
            r#type: Some(kind.into()),
            type_name: (kind == Type::Message).then(|| format!(".{inner}")),
            ..FieldDescriptorProto::default()
        }
    });
    let field = field.collect();
    messages.push(DescriptorProto { name: Some(name.to_owned()), field, ..DescriptorProto::default() });
}

#[test]
fn a_protobuf_library_reads_every_kind_and_writes_the_same_bytes() {
    let (pool, frame) = (pool(), RecordFrame { payload_bytes: Some(1_000), ..RecordFrame::default() });
    for kind in EventKind::samples() {
        let mut record = Vec::new();
        kind.encode(&frame, &mut record);

        let descriptor = pool.get_message_by_name(kind.name()).unwrap();
        let message = DynamicMessage::decode(descriptor, &*record).unwrap();

        assert_eq!(message.unknown_fields().count(), 0, "{kind:?}");
        let declared = EventKind::KINDS.iter().find(|info| info.name == kind.name()).unwrap();
        for field in declared.fields {
            assert!(message.has_field_by_number(field.number), "{} of {}", field.name, kind.name());
        }
        assert_eq!(message.get_field_by_number(15).as_deref(), Some(&Value::U64(1_000)));
        assert_eq!(message.encode_to_vec(), record, "{kind:?}");
    }
}
