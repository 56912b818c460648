//! How a section is declared: its fields, their documentation and their defaults in one place.

use serde_json::Value;

/// One key, as it is documented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDoc {
    pub section: &'static str,
    pub name: &'static str,
    /// Lines of documentation.
    pub about: &'static [&'static str],
    /// What must be written.
    pub expected: &'static str,
}

impl KeyDoc {
    /// `worker.lease`
    pub fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// `KAGZI__WORKER__LEASE`
    pub fn variable(&self) -> String {
        format!("KAGZI__{}__{}", self.section.to_uppercase(), self.name.to_uppercase())
    }
}

/// Why a value could not be set.
#[derive(Debug, PartialEq, Eq)]
pub enum SetError {
    Unknown,
    /// Of the wrong type, or not sensible.
    Invalid(String),
}

/// A documented key with its value, as people are shown it.
pub type Shown = (KeyDoc, Value);

/// Declares one section.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $struct:ident as $section:literal {
            $( $(#[doc = $doc:literal])+ $field:ident: $type:ty = $default:expr, )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq)]
        pub struct $struct {
            $( $(#[doc = $doc])+ pub $field: $type, )+
        }

        impl Default for $struct {
            fn default() -> Self {
                $struct { $( $field: $default, )+ }
            }
        }

        impl $struct {
            const ABOUT: &'static [&'static str] = &[$($about),+];

            fn set(&mut self, name: &str, raw: &$crate::config::value::Raw) -> Result<(), SetError> {
                match name {
                    $( stringify!($field) => {
                        self.$field = <$type as Setting>::parse(raw).map_err(SetError::Invalid)?;
                    } )+
                    _ => return Err(SetError::Unknown),
                }
                Ok(())
            }

            fn values(&self) -> Vec<Shown> {
                vec![$( (
                    KeyDoc {
                        section: $section,
                        name: stringify!($field),
                        about: &[$($doc),+],
                        expected: <$type as Setting>::EXPECTED,
                    },
                    Setting::show(&self.$field),
                ) ),+]
            }
        }
    };
}

/// Declares the whole: one field per section, named as the section is.
macro_rules! config {
    ($(#[doc = $about:literal])+ $struct:ident { $($section:ident: $type:ty,)+ }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $struct {
            $( pub $section: $type, )+
        }

        impl $struct {
            /// Sets `section.key`.
            pub(super) fn set(&mut self, key: &str, raw: &Raw) -> Result<(), SetError> {
                match key.split_once('.') {
                    $( Some((stringify!($section), name)) => self.$section.set(name, raw), )+
                    _ => Err(SetError::Unknown),
                }
            }

            /// Every key with its value.
            pub fn values(&self) -> Vec<Shown> {
                let mut values = Vec::new();
                $( values.extend(self.$section.values()); )+
                values
            }

            /// Sections with what they are about.
            pub fn sections() -> Vec<(&'static str, &'static [&'static str])> {
                vec![$( (stringify!($section), <$type>::ABOUT) ),+]
            }
        }
    };
}

pub(super) use {config, section};
