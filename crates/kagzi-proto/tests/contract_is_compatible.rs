//! Whoever was written against the last release goes on working: nothing of its contract is removed,
//! renumbered or given another type. `baseline/descriptors.bin` is the contract as it was released; a release
//! replaces it with `KAGZI_WRITE_BASELINE=1 cargo test -p kagzi-proto`, and nobody else does.

use std::{collections::BTreeMap, fs, path::Path};

use kagzi_proto::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
};

#[test]
fn nothing_that_was_released_is_broken() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("baseline/descriptors.bin");
    if std::env::var_os("KAGZI_WRITE_BASELINE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, FILE_DESCRIPTOR_SET).unwrap();
    }

    let released = outline(&fs::read(&path).expect("the baseline is committed"));
    let now = outline(FILE_DESCRIPTOR_SET);

    assert!(released.len() > 500, "only {} things were released", released.len());
    let broken = breaks(&released, &now);
    assert!(broken.is_empty(), "this breaks clients of the last release:\n{}", broken.join("\n"));
}

/// Everything that a client can rely on, by its name: its number and its type.
type Outline = BTreeMap<String, String>;

fn outline(descriptors: &[u8]) -> Outline {
    let set = FileDescriptorSet::decode(descriptors).expect("descriptors");
    let mut outline = Outline::new();
    for file in set.file.iter().filter(|file| file.package() == "kagzi.v1") {
        outline_of_file(&mut outline, file);
    }
    outline
}

fn outline_of_file(outline: &mut Outline, file: &FileDescriptorProto) {
    for service in &file.service {
        for method in &service.method {
            let streams = (method.client_streaming(), method.server_streaming());
            let says = format!("{} -> {}, streams {streams:?}", method.input_type(), method.output_type());
            outline.insert(format!("rpc {}/{}", service.name(), method.name()), says);
        }
    }
    file.enum_type.iter().for_each(|it| outline_of_enum(outline, file.package(), it));
    file.message_type.iter().for_each(|it| outline_of_message(outline, file.package(), it));
}

fn outline_of_enum(outline: &mut Outline, scope: &str, it: &EnumDescriptorProto) {
    for value in &it.value {
        let number = value.number().to_string();
        outline.insert(format!("enum value {scope}.{}.{}", it.name(), value.name()), number);
    }
}

fn outline_of_message(outline: &mut Outline, scope: &str, it: &DescriptorProto) {
    let name = format!("{scope}.{}", it.name());
    outline.insert(format!("message {name}"), String::new());
    for field in &it.field {
        // A field is found by its number in bytes and by its name in JSON and in code.
        let (number, type_name) = (field.number(), type_name(field));
        let oneof = field.oneof_index.map(|at| it.oneof_decl[at as usize].name()).unwrap_or_default();
        let says = format!("{} {type_name}, oneof '{oneof}'", field.name());
        outline.insert(format!("field {name} number {number}"), says);
    }
    it.enum_type.iter().for_each(|inner| outline_of_enum(outline, &name, inner));
    it.nested_type.iter().for_each(|inner| outline_of_message(outline, &name, inner));
}

fn type_name(field: &FieldDescriptorProto) -> String {
    format!("{:?} {:?} {}", field.label(), field.r#type(), field.type_name())
}

fn breaks(released: &Outline, now: &Outline) -> Vec<String> {
    let broken = |(what, was): (&String, &String)| match now.get(what) {
        Some(is) if is == was => None,
        Some(is) => Some(format!("{what}: was {was}, is {is}")),
        None => Some(format!("{what} is gone")),
    };
    released.iter().filter_map(broken).collect()
}

#[test]
fn what_breaks_a_client_is_found_and_what_is_new_is_not() {
    let mut file = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let released = outline(FILE_DESCRIPTOR_SET);
    let workflow = file.file.iter_mut().find(|file| file.name().ends_with("workflow.proto")).unwrap();
    workflow.service[0].method.retain(|method| method.name() != "GetWorkflowRun");
    let start = workflow.message_type.iter_mut().find(|it| it.name() == "StartWorkflowRequest").unwrap();
    start.field.retain(|field| field.number() != 20);
    let queue = start.field.iter_mut().find(|field| field.number() == 2).unwrap();
    queue.name = Some("queue".into());
    let kind = start.field.iter_mut().find(|field| field.number() == 3).unwrap();
    kind.set_type(prost_types::field_descriptor_proto::Type::Bytes);
    start.field.push(FieldDescriptorProto { number: Some(999), ..queue_like("something_new") });
    workflow.enum_type[0].value[1].number = Some(77);

    let found = breaks(&released, &outline(&file.encode_to_vec()));

    assert_eq!(found.len(), 5, "{found:#?}");
    for part in ["GetWorkflowRun is gone", "number 20 is gone", "was task_queue", "Bytes", "is 77"] {
        assert!(found.iter().any(|line| line.contains(part)), "{part} in {found:#?}");
    }
}

fn queue_like(name: &str) -> FieldDescriptorProto {
    FieldDescriptorProto { name: Some(name.into()), ..Default::default() }
}
