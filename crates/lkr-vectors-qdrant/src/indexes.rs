//! Indexes of payload fields.

use qdrant_client::qdrant::{
    FieldType, IntegerIndexParams, KeywordIndexParams, KeywordPrefixParams, PayloadIndexParams,
    payload_index_params::IndexParams,
};

use crate::{point, tag_fields};

/// A field that filters compare, with the form of its index.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum FieldIndex {
    /// Texts of UUIDs, compared by equality.
    Uuid(String),
    /// Integers, compared by equality.
    Integer(String),
    /// Integers, compared by order.
    Seconds(String),
    /// Doubles, compared by order.
    Number(String),
    /// Texts, compared by their beginning.
    Prefix(String),
}

/// The indexes that every collection has.
pub(crate) fn permanent() -> [FieldIndex; 3] {
    [
        FieldIndex::Uuid(point::DOC_ID.to_owned()),
        FieldIndex::Integer(point::REVISION.to_owned()),
        FieldIndex::Uuid(tag_fields::TOKENS.to_owned()),
    ]
}

impl FieldIndex {
    /// The path of the field.
    pub(crate) fn field(&self) -> &str {
        match self {
            Self::Uuid(field)
            | Self::Integer(field)
            | Self::Seconds(field)
            | Self::Number(field)
            | Self::Prefix(field) => field,
        }
    }

    pub(crate) const fn field_type(&self) -> FieldType {
        match self {
            Self::Uuid(_) => FieldType::Uuid,
            Self::Integer(_) | Self::Seconds(_) => FieldType::Integer,
            Self::Number(_) => FieldType::Float,
            Self::Prefix(_) => FieldType::Keyword,
        }
    }

    pub(crate) fn params(&self) -> Option<PayloadIndexParams> {
        let integer = |lookup, range| {
            let (lookup, range) = (Some(lookup), Some(range));
            IndexParams::IntegerIndexParams(IntegerIndexParams {
                lookup,
                range,
                ..IntegerIndexParams::default()
            })
        };
        let params = match self {
            Self::Uuid(_) | Self::Number(_) => return None,
            Self::Integer(_) => integer(true, false),
            Self::Seconds(_) => integer(false, true),
            Self::Prefix(_) => IndexParams::KeywordIndexParams(KeywordIndexParams {
                prefix: Some(KeywordPrefixParams {}),
                ..KeywordIndexParams::default()
            }),
        };
        Some(PayloadIndexParams { index_params: Some(params) })
    }
}
