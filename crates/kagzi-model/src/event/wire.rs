//! The bytes of an event: protobuf's wire format, written straight from the model.
//!
//! Every type that may stand in an event says here how it is written and read. Building messages first and
//! encoding those would cost the hot path half a microsecond per run. A test reads what is written here with
//! an ordinary protobuf library.

use uuid::Uuid;

use crate::{Backoff, ClosePolicy, Finality, Name, RunId, Timestamp, Wake, WorkerId};

/// One field's value as it stands in the bytes.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// What protobuf calls the type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proto {
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Double,
    String,
    Bytes,
    Repeated(&'static Proto),
    Message(&'static [Field]),
}

/// One field of an event or of a message inside it, as it is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Never reused.
    pub number: u32,
    pub name: &'static str,
    /// What it says, where the name does not.
    pub meaning: &'static str,
    pub proto: Proto,
}

/// A type that may stand in an event.
pub trait Wire: Sized {
    const PROTO: Proto;

    /// Appends the field, unless it says what its absence says.
    fn put(&self, field: u32, out: &mut Vec<u8>);
    /// Takes a value in. None when it is none of this type.
    fn take(slot: &mut Option<Self>, value: Value<'_>) -> Option<()>;
    /// What it means that the field is not there; none where it must be.
    fn absent() -> Option<Self>;
    /// A value for tests, unlike what absence means.
    fn sample() -> Self;

    /// Says nothing that its absence would not say.
    fn is_absent(&self) -> bool
    where
        Self: PartialEq,
    {
        Self::absent().is_some_and(|absent| absent == *self)
    }
}

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;
const FIXED32: u32 = 5;

/// Appends a number, seven bits at a time.
pub fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number off the front.
pub fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn put_tag(field: u32, wire_type: u32, out: &mut Vec<u8>) {
    put_varint(u64::from(field << 3 | wire_type), out);
}

/// Appends a field that is a number.
pub fn put_number(field: u32, number: u64, out: &mut Vec<u8>) {
    put_tag(field, VARINT, out);
    put_varint(number, out);
}

/// Appends a field of bytes.
pub fn put_bytes(field: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_tag(field, BYTES, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends a field whose bytes `write` appends.
pub fn put_message(field: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    put_tag(field, BYTES, out);
    put_delimited(out, write);
}

/// Appends the length of what `write` appends, and that. Nearly always the length has one byte, so it is
/// written first and made longer afterwards where it must be.
pub fn put_delimited(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(0);
    write(out);
    let length = out.len() - at - 1;
    if length < 0x80 {
        out[at] = length as u8;
        return;
    }
    let mut prefix = Vec::with_capacity(5);
    put_varint(length as u64, &mut prefix);
    out.splice(at..=at, prefix);
}

/// Takes off the front what [`put_delimited`] wrote.
pub fn take_delimited<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_varint(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// Takes the next field off the front.
pub fn take_field<'a>(bytes: &mut &'a [u8]) -> Option<(u32, Value<'a>)> {
    let tag = u32::try_from(take_varint(bytes)?).ok()?;
    let value = match tag & 7 {
        VARINT => Value::Varint(take_varint(bytes)?),
        FIXED64 => Value::Fixed64(u64::from_le_bytes(take_array(bytes)?)),
        BYTES => Value::Bytes(take_delimited(bytes)?),
        FIXED32 => Value::Fixed32(u32::from_le_bytes(take_array(bytes)?)),
        // Groups were given up by protobuf itself; the rest was never anything.
        _ => return None,
    };
    (tag >> 3 != 0).then_some((tag >> 3, value))
}

fn take_array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (array, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*array)
}

/// Whole numbers: zero is not written.
macro_rules! number {
    ($type:ty, $proto:ident, $sample:expr) => {
        impl Wire for $type {
            const PROTO: Proto = Proto::$proto;

            fn put(&self, field: u32, out: &mut Vec<u8>) {
                if *self != 0 {
                    put_number(field, *self as i64 as u64, out);
                }
            }

            fn take(slot: &mut Option<Self>, value: Value<'_>) -> Option<()> {
                let Value::Varint(number) = value else { return None };
                // A negative number has its sign in all 64 bits.
                *slot = Some(<$type>::try_from(number).or_else(|_| <$type>::try_from(number as i64)).ok()?);
                Some(())
            }

            fn absent() -> Option<Self> {
                Some(0)
            }

            fn sample() -> Self {
                $sample
            }
        }
    };
}

number!(u16, Uint32, 429);
number!(u32, Uint32, 300);
number!(u64, Uint64, u64::MAX);
number!(i32, Int32, -1);
number!(i64, Int64, 86_400_000);

impl Wire for bool {
    const PROTO: Proto = Proto::Bool;

    fn put(&self, field: u32, out: &mut Vec<u8>) {
        u32::from(*self).put(field, out);
    }

    fn take(slot: &mut Option<Self>, value: Value<'_>) -> Option<()> {
        let Value::Varint(number) = value else { return None };
        *slot = Some(number != 0);
        Some(())
    }

    fn absent() -> Option<Self> {
        Some(false)
    }

    fn sample() -> Self {
        true
    }
}

impl Wire for f64 {
    const PROTO: Proto = Proto::Double;

    fn put(&self, field: u32, out: &mut Vec<u8>) {
        if self.to_bits() != 0 {
            put_tag(field, FIXED64, out);
            out.extend_from_slice(&self.to_le_bytes());
        }
    }

    fn take(slot: &mut Option<Self>, value: Value<'_>) -> Option<()> {
        let Value::Fixed64(bits) = value else { return None };
        *slot = Some(f64::from_bits(bits));
        Some(())
    }

    fn absent() -> Option<Self> {
        Some(0.0)
    }

    fn sample() -> Self {
        1.5
    }
}

/// A type that is written as another one, and always: an event without it is damaged.
macro_rules! always {
    (
        $type:ty as $proto:ident,
        |$own:ident, $field:ident, $out:ident| $put:expr,
        |$value:ident| $take:expr,
        $sample:expr
    ) => {
        impl Wire for $type {
            const PROTO: Proto = Proto::$proto;

            fn put(&self, $field: u32, $out: &mut Vec<u8>) {
                let $own = self;
                $put
            }

            fn take(slot: &mut Option<Self>, $value: Value<'_>) -> Option<()> {
                *slot = Some($take);
                Some(())
            }

            fn absent() -> Option<Self> {
                None
            }

            fn sample() -> Self {
                $sample
            }
        }
    };
}

fn text(value: Value<'_>) -> Option<&str> {
    let Value::Bytes(bytes) = value else { return None };
    std::str::from_utf8(bytes).ok()
}

fn uuid(value: Value<'_>) -> Option<Uuid> {
    let Value::Bytes(bytes) = value else { return None };
    Uuid::from_slice(bytes).ok()
}

fn varint(value: Value<'_>) -> Option<u64> {
    let Value::Varint(number) = value else { return None };
    Some(number)
}

always!(
    Name as String,
    |own, field, out| put_bytes(field, own.as_bytes(), out),
    |value| Name::from(text(value)?),
    Name::from("naïve")
);
always!(
    Timestamp as Int64,
    |own, field, out| put_number(field, own.0.cast_unsigned(), out),
    |value| Timestamp(varint(value)?.cast_signed()),
    Timestamp(1_700_000_000_000_000)
);
always!(
    RunId as Bytes,
    |own, field, out| put_bytes(field, own.0.as_bytes(), out),
    |value| RunId(uuid(value)?),
    RunId(Uuid::from_u128(7))
);
always!(
    WorkerId as Bytes,
    |own, field, out| put_bytes(field, own.0.as_bytes(), out),
    |value| WorkerId(uuid(value)?),
    WorkerId(Uuid::from_u128(8))
);
always!(
    Finality as Uint32,
    |own, field, out| put_number(field, *own as u64, out),
    |value| Finality::from_number(varint(value)?)?,
    Finality::RunBudget
);
always!(
    ClosePolicy as Uint32,
    |own, field, out| put_number(field, *own as u64, out),
    |value| ClosePolicy::from_number(varint(value)?)?,
    ClosePolicy::Abandon
);
always!(
    Wake as Uint32,
    |own, field, out| put_number(field, *own as u64, out),
    |value| Wake::from_number(varint(value)?)?,
    Wake::Last
);
always!(
    Backoff as Uint32,
    |own, field, out| put_number(field, *own as u64, out),
    |value| Backoff::from_number(varint(value)?)?,
    Backoff::FromHeader
);

impl Wire for String {
    const PROTO: Proto = Proto::String;

    fn put(&self, field: u32, out: &mut Vec<u8>) {
        if !self.is_empty() {
            put_bytes(field, self.as_bytes(), out);
        }
    }

    fn take(slot: &mut Option<Self>, value: Value<'_>) -> Option<()> {
        *slot = Some(text(value)?.to_owned());
        Some(())
    }

    fn absent() -> Option<Self> {
        Some(String::new())
    }

    fn sample() -> Self {
        "why so".to_owned()
    }
}

/// Written when it is there, also when it is zero or empty.
impl<T: Wire + PartialEq> Wire for Option<T> {
    const PROTO: Proto = T::PROTO;

    fn put(&self, field: u32, out: &mut Vec<u8>) {
        let Some(value) = self else { return };
        let before = out.len();
        value.put(field, out);
        if out.len() == before {
            put_nothing(T::PROTO, field, out);
        }
    }

    fn take(slot: &mut Option<Self>, value: Value<'_>) -> Option<()> {
        let mut inner = None;
        T::take(&mut inner, value)?;
        *slot = Some(inner);
        Some(())
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn sample() -> Self {
        Some(T::sample())
    }
}

/// A field that is there and says zero, or has no bytes.
fn put_nothing(proto: Proto, field: u32, out: &mut Vec<u8>) {
    match proto {
        Proto::Bool | Proto::Int32 | Proto::Int64 | Proto::Uint32 | Proto::Uint64 => {
            put_number(field, 0, out)
        }
        Proto::Double => {
            put_tag(field, FIXED64, out);
            out.extend_from_slice(&[0; 8]);
        }
        Proto::String | Proto::Bytes | Proto::Message(_) | Proto::Repeated(_) => put_bytes(field, &[], out),
    }
}

/// One field each. Numbers that another writer packed into one are not read, because nobody writes them.
impl<T: Wire + PartialEq> Wire for Vec<T> {
    const PROTO: Proto = Proto::Repeated(&T::PROTO);

    fn put(&self, field: u32, out: &mut Vec<u8>) {
        for value in self {
            let before = out.len();
            value.put(field, out);
            if out.len() == before {
                put_nothing(T::PROTO, field, out);
            }
        }
    }

    fn take(slot: &mut Option<Self>, value: Value<'_>) -> Option<()> {
        let mut one = None;
        T::take(&mut one, value)?;
        slot.get_or_insert_default().extend(one);
        Some(())
    }

    fn absent() -> Option<Self> {
        Some(Vec::new())
    }

    fn sample() -> Self {
        vec![T::sample(), T::sample()]
    }
}

/// Makes a struct a message: its fields with their numbers, each declared once. Fields are only ever added,
/// and numbers never reused. Fields of later versions are passed over.
macro_rules! message {
    ($type:ident { $($number:literal $field:ident: $kind:ty),* $(,)? } absent $absent:expr) => {
        impl Wire for $type {
            const PROTO: Proto = Proto::Message(&[
                $(Field {
                    number: $number,
                    name: stringify!($field),
                    meaning: "",
                    proto: <$kind as Wire>::PROTO,
                },)*
            ]);

            fn put(&self, field: u32, out: &mut Vec<u8>) {
                if Self::absent().is_some_and(|absent| absent == *self) {
                    return;
                }
                put_message(field, out, |out| {
                    $(Wire::put(&self.$field, $number, out);)*
                });
            }

            fn take(slot: &mut Option<Self>, value: Value<'_>) -> Option<()> {
                let Value::Bytes(mut bytes) = value else { return None };
                $(let mut $field: Option<$kind> = None;)*
                while !bytes.is_empty() {
                    let (number, value) = take_field(&mut bytes)?;
                    match number {
                        $($number => Wire::take(&mut $field, value)?,)*
                        _ => {}
                    }
                }
                *slot = Some($type {
                    $($field: match $field {
                        Some(value) => value,
                        None => Wire::absent()?,
                    },)*
                });
                Some(())
            }

            fn absent() -> Option<Self> {
                $absent
            }

            fn sample() -> Self {
                $type { $($field: Wire::sample()),* }
            }
        }
    };
}
pub(crate) use message;
