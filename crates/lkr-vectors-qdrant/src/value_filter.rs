//! Tests of values as Qdrant evaluates them. All are exact: see `tag_fields` for the stored forms.

use lkr_domain::filter::{Instant, Operand, Range as OperandRange, RangeEnd, ValueTest};
use qdrant_client::qdrant::{Range, r#match::MatchValue};

use crate::{
    filter::{Meaning, all_of, any_of, any_token, in_range, matches, not},
    indexes::FieldIndex,
    tag_fields::{self, CHUNK_BYTES, CHUNKS, NANOS, NUMBER, SECONDS, TEXT},
    token,
};

/// The points whose tag `key` passes the test.
pub(crate) fn passing(key: &str, test: &ValueTest, fields: &mut Vec<FieldIndex>) -> Meaning {
    match test {
        ValueTest::In(operands) => any_token(operands.iter().filter_map(|operand| match operand {
            // An empty value equals nothing.
            Operand::Text(text) => (!text.is_empty()).then(|| token::text(key, text)),
            Operand::Number(number) => Some(token::number(key, *number)),
            Operand::Instant(at) => Some(token::instant(key, *at)),
        })),
        ValueTest::Exists(true) => exists(key),
        ValueTest::Exists(false) => not(exists(key)),
        ValueTest::Prefix(prefix) if prefix.is_empty() => exists(key),
        ValueTest::Prefix(prefix) => {
            fields.push(FieldIndex::Prefix(tag_fields::path(key, TEXT)));
            starts_with(key, prefix)
        }
        ValueTest::Range(range) => in_operand_range(key, range, fields),
    }
}

fn exists(key: &str) -> Meaning {
    any_token([token::exists(key)])
}

fn starts_with(key: &str, prefix: &str) -> Meaning {
    matches(&tag_fields::path(key, TEXT), MatchValue::Prefix(prefix.to_owned()))
}

fn in_operand_range(key: &str, range: &OperandRange, fields: &mut Vec<FieldIndex>) -> Meaning {
    let (lower, upper) = range.ends();
    let lower = lower.map(|end| beyond(key, end, Side::Above, fields));
    let upper = upper.map(|end| beyond(key, end, Side::Below, fields));
    // Ends of two types select nothing, because no value is compared by both: a value is a number or an instant, and a
    // range of texts has texts at both ends.
    match range {
        OperandRange::Between(a, b)
            if std::mem::discriminant(&a.operand) != std::mem::discriminant(&b.operand) =>
        {
            Meaning::Nothing
        }
        _ => all_of(lower.into_iter().chain(upper)),
    }
}

/// On which side of an end a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Above,
    Below,
}

impl Side {
    /// The numbers on this side of `end`.
    const fn of(self, end: f64, is_included: bool) -> Range {
        let (mut lt, mut gt, mut lte, mut gte) = (None, None, None, None);
        match (self, is_included) {
            (Self::Above, true) => gte = Some(end),
            (Self::Above, false) => gt = Some(end),
            (Self::Below, true) => lte = Some(end),
            (Self::Below, false) => lt = Some(end),
        }
        Range { lt, gt, gte, lte }
    }
}

fn beyond(key: &str, end: &RangeEnd, side: Side, fields: &mut Vec<FieldIndex>) -> Meaning {
    match &end.operand {
        Operand::Number(number) => {
            let path = tag_fields::path(key, NUMBER);
            fields.push(FieldIndex::Number(path.clone()));
            in_range(path, side.of(number.value(), end.is_included))
        }
        Operand::Instant(at) => {
            fields.push(FieldIndex::Seconds(tag_fields::path(key, SECONDS)));
            beyond_instant(key, *at, end.is_included, side)
        }
        Operand::Text(text) => {
            fields.push(FieldIndex::Number(chunk_path(key, 0)));
            if text.len() > CHUNK_BYTES {
                fields.push(FieldIndex::Prefix(tag_fields::path(key, TEXT)));
            }
            beyond_text(key, text, end.is_included, side)
        }
    }
}

/// Instants are compared by their seconds, then by their nanoseconds.
fn beyond_instant(key: &str, at: Instant, is_included: bool, side: Side) -> Meaning {
    let (seconds, nanos) = tag_fields::instant_parts(at);
    let path = |part| tag_fields::path(key, part);
    let in_second =
        [equals(path(SECONDS), seconds as f64), in_range(path(NANOS), side.of(nanos as f64, is_included))];
    any_of([in_range(path(SECONDS), side.of(seconds as f64, false)), all_of(in_second)])
}

/// The path of one of the numbers of a text. Qdrant indexes such an element like a field of its own.
fn chunk_path(key: &str, at: usize) -> String {
    format!("{}[{at}]", tag_fields::path(key, CHUNKS))
}

/// Texts are compared by the first number at which they differ. Before it they are equal.
fn beyond_text(key: &str, text: &str, is_included: bool, side: Side) -> Meaning {
    let chunk = |at| chunk_path(key, at);
    let chunks: Vec<f64> = tag_fields::chunks(text).collect();
    let mut before = 0.0;
    let mut any = Vec::with_capacity(chunks.len() + 1);
    for (at, number) in chunks.into_iter().enumerate() {
        let differs = in_range(chunk(at), side.of(number, false));
        let first_bytes = text.floor_char_boundary(at * CHUNK_BYTES);
        any.push(match text.get(..first_bytes) {
            None | Some("") => differs,
            // The prefix ends at a character, the chunk before at a byte; together they are all bytes before.
            Some(prefix) => all_of([starts_with(key, prefix), equals(chunk(at - 1), before), differs]),
        });
        before = number;
    }
    if is_included {
        any.push(any_token([token::text(key, text)]));
    }
    all_of([exists(key), any_of(any)])
}

fn equals(path: String, number: f64) -> Meaning {
    in_range(path, Range { gte: Some(number), lte: Some(number), ..Range::default() })
}
