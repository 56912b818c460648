//! Values on their way into a statement and out of a row, the same for every engine.

use kagzi_model::{Name, RunId, Timestamp, WorkerId};
use kagzi_store::StoreError;
use uuid::Uuid;

/// What a column holds. Borrowed both ways: binding and reading copy nothing by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    Null,
    Integer(i64),
    Text(&'a str),
    Blob(&'a [u8]),
}

/// The values of a statement, `?1` first. Write it inside the call: temporaries such as [`json`] live as
/// long.
macro_rules! bind {
    ($($value:expr),* $(,)?) => { &[$($crate::value::Bind::value(&$value)),*] };
}
pub(crate) use bind;

/// What can be bound to a statement.
pub trait Bind {
    fn value(&self) -> Value<'_>;
}

/// A value as JSON text, to be bound.
pub fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("our own types are always valid JSON")
}

/// What a column can be read as.
pub trait FromColumn: Sized {
    fn from_value(value: Value<'_>) -> Result<Self, String>;
}

/// One row that a statement found.
pub struct Row<'r> {
    columns: &'r dyn Columns,
}

/// The columns of an engine's own row.
pub trait Columns {
    fn value(&self, at: usize) -> Result<Value<'_>, StoreError>;
}

impl<'r> Row<'r> {
    pub fn new(columns: &'r dyn Columns) -> Self {
        Row { columns }
    }

    /// Reads a column. What cannot be read is reported, never replaced by a default.
    pub fn get<T: FromColumn>(&self, at: usize) -> Result<T, StoreError> {
        T::from_value(self.columns.value(at)?).map_err(|why| unreadable(at, why))
    }

    /// Reads a column of bytes without copying them.
    pub fn bytes(&self, at: usize) -> Result<&'r [u8], StoreError> {
        blob(self.columns.value(at)?).map_err(|why| unreadable(at, why))
    }

    /// Reads a column of text without keeping it.
    pub fn text<T>(&self, at: usize, read: impl FnOnce(&str) -> T) -> Result<T, StoreError> {
        text(self.columns.value(at)?).map(read).map_err(|why| unreadable(at, why))
    }

    /// Reads a column of JSON.
    pub fn json<T: serde::de::DeserializeOwned>(&self, at: usize) -> Result<T, StoreError> {
        let text = text(self.columns.value(at)?).map_err(|why| unreadable(at, why))?;
        serde_json::from_str(text).map_err(|error| unreadable(at, error))
    }
}

/// A column holds what no version of ours has written.
pub fn unreadable(at: usize, why: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("could not read column {at}: {why}"))
}

impl<T: Bind + ?Sized> Bind for &T {
    fn value(&self) -> Value<'_> {
        (**self).value()
    }
}

impl<T: Bind> Bind for Option<T> {
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, Bind::value)
    }
}

impl<T: FromColumn> FromColumn for Option<T> {
    fn from_value(value: Value<'_>) -> Result<Self, String> {
        match value {
            Value::Null => Ok(None),
            Value::Integer(_) | Value::Text(_) | Value::Blob(_) => T::from_value(value).map(Some),
        }
    }
}

impl Bind for i64 {
    fn value(&self) -> Value<'_> {
        Value::Integer(*self)
    }
}

impl FromColumn for i64 {
    fn from_value(value: Value<'_>) -> Result<Self, String> {
        match value {
            Value::Integer(number) => Ok(number),
            Value::Null | Value::Text(_) | Value::Blob(_) => Err(unexpected("a number", value)),
        }
    }
}

/// Versions, epochs and counts: 64 bits are kept as they are, whatever their sign.
impl Bind for u64 {
    fn value(&self) -> Value<'_> {
        Value::Integer(self.cast_signed())
    }
}

impl FromColumn for u64 {
    fn from_value(value: Value<'_>) -> Result<Self, String> {
        i64::from_value(value).map(i64::cast_unsigned)
    }
}

/// Limits.
impl Bind for usize {
    fn value(&self) -> Value<'_> {
        Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
    }
}

macro_rules! small_numbers {
    ($($number:ty),*) => { $(
        impl Bind for $number {
            fn value(&self) -> Value<'_> {
                Value::Integer(i64::from(*self))
            }
        }

        impl FromColumn for $number {
            fn from_value(value: Value<'_>) -> Result<Self, String> {
                let number = i64::from_value(value)?;
                Self::try_from(number).map_err(|_| format!("{number} is out of range"))
            }
        }
    )* };
}
small_numbers!(u8, u16, i32, u32);

impl Bind for bool {
    fn value(&self) -> Value<'_> {
        Value::Integer(i64::from(*self))
    }
}

impl FromColumn for bool {
    fn from_value(value: Value<'_>) -> Result<Self, String> {
        i64::from_value(value).map(|number| number != 0)
    }
}

impl Bind for str {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl Bind for String {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl FromColumn for String {
    fn from_value(value: Value<'_>) -> Result<Self, String> {
        text(value).map(str::to_owned)
    }
}

impl Bind for Name {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl FromColumn for Name {
    fn from_value(value: Value<'_>) -> Result<Self, String> {
        text(value).map(Name::from)
    }
}

impl Bind for [u8] {
    fn value(&self) -> Value<'_> {
        Value::Blob(self)
    }
}

impl Bind for Vec<u8> {
    fn value(&self) -> Value<'_> {
        Value::Blob(self)
    }
}

impl FromColumn for Vec<u8> {
    fn from_value(value: Value<'_>) -> Result<Self, String> {
        blob(value).map(<[u8]>::to_vec)
    }
}

impl Bind for Uuid {
    fn value(&self) -> Value<'_> {
        Value::Blob(self.as_bytes())
    }
}

impl FromColumn for Uuid {
    fn from_value(value: Value<'_>) -> Result<Self, String> {
        Uuid::from_slice(blob(value)?).map_err(|error| error.to_string())
    }
}

/// Our types of one field are stored as that field.
macro_rules! wrappers {
    ($($wrapper:ident),*) => { $(
        impl Bind for $wrapper {
            fn value(&self) -> Value<'_> {
                self.0.value()
            }
        }

        impl FromColumn for $wrapper {
            fn from_value(value: Value<'_>) -> Result<Self, String> {
                FromColumn::from_value(value).map($wrapper)
            }
        }
    )* };
}
wrappers!(RunId, WorkerId, Timestamp);

fn text(value: Value<'_>) -> Result<&str, String> {
    match value {
        Value::Text(text) => Ok(text),
        Value::Null | Value::Integer(_) | Value::Blob(_) => Err(unexpected("text", value)),
    }
}

fn blob(value: Value<'_>) -> Result<&[u8], String> {
    match value {
        Value::Blob(bytes) => Ok(bytes),
        Value::Null | Value::Integer(_) | Value::Text(_) => Err(unexpected("bytes", value)),
    }
}

/// Names the kind that was found and not the value: it may be a secret.
fn unexpected(wanted: &str, found: Value<'_>) -> String {
    let found = match found {
        Value::Null => "nothing",
        Value::Integer(_) => "a number",
        Value::Text(_) => "text",
        Value::Blob(_) => "bytes",
    };
    format!("expected {wanted}, found {found}")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One(Value<'static>);

    impl Columns for One {
        fn value(&self, _: usize) -> Result<Value<'_>, StoreError> {
            Ok(self.0)
        }
    }

    #[test]
    fn what_is_bound_is_what_is_read() {
        let id = RunId(Uuid::from_u128(7));

        assert_eq!(RunId::from_value(id.value()), Ok(id));
        assert_eq!(u64::from_value(u64::MAX.value()), Ok(u64::MAX));
        assert_eq!(Option::<Timestamp>::from_value(None::<Timestamp>.value()), Ok(None));
        assert_eq!(Option::<Timestamp>::from_value(Timestamp(-3).value()), Ok(Some(Timestamp(-3))));
        assert_eq!(Name::from_value("order".value()), Ok(Name::from("order")));
    }

    #[test]
    fn what_does_not_fit_is_corruption_and_the_value_is_not_told() {
        let secret = One(Value::Text("secret"));
        let large = One(Value::Integer(1 << 40));

        let error = Row::new(&secret).get::<i64>(3).unwrap_err();
        assert_eq!(
            error,
            StoreError::Corrupt("could not read column 3: expected a number, found text".into())
        );
        assert!(matches!(Row::new(&large).get::<u32>(0), Err(StoreError::Corrupt(_))));
        assert!(matches!(Row::new(&secret).json::<u32>(0), Err(StoreError::Corrupt(_))));
    }
}
