//! Identifiers: version 7 UUIDs, which sort by the time of their making, as 32 lower-case hexadecimal characters.

use std::{fmt, str::FromStr};

use lkr_domain::ParseIdError;
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id, behind all that this process made before.
            pub(crate) fn make() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(self.0.as_simple(), f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                parse(text).map(Self).ok_or(ParseIdError)
            }
        }
    };
}

id! {
    /// An entry of the audit log.
    AuditId
}
id! {
    /// An API key. It is no secret.
    KeyId
}

/// An id is written in one way only, so that no two texts name the same.
fn parse(text: &str) -> Option<Uuid> {
    let well_formed = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    well_formed.then(|| Uuid::try_parse(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_in_one_way_and_sort_by_their_making() {
        let ids: Vec<_> = (0..1000).map(|_| KeyId::make().to_string()).collect();
        assert!(ids.is_sorted() && ids.iter().all(|id| id.len() == 32));
        for id in &ids {
            assert_eq!(id.parse::<KeyId>().unwrap().to_string(), *id);
        }
        let good = "0123456789abcdef0123456789abcdef";
        assert!(good.parse::<AuditId>().is_ok());
        let upper = good.to_uppercase();
        for bad in [
            "",
            "0123456789abcdef0123456789abcde",
            &upper,
            "01234567-89ab-cdef-0123-456789abcdef",
            "g123456789abcdef0123456789abcdef",
        ] {
            assert!(bad.parse::<AuditId>().is_err(), "{bad}");
        }
    }
}
