//! Filters over payloads, as Qdrant documents them.

use std::collections::HashMap;

use qdrant_client::qdrant::{
    Condition, FieldCondition, Filter, Range, Value, condition::ConditionOneOf, r#match::MatchValue,
    value::Kind,
};
use tonic::Status;

use super::{StoredPoint, points::id_number};

pub(super) fn matches(filter: &Filter, id: u128, point: &StoredPoint) -> Result<bool, Status> {
    if filter.min_should.is_some() {
        return Err(Status::unimplemented("min_should"));
    }
    if filter.must.iter().any(|condition| filter.must_not.contains(condition)) {
        return Err(Status::internal("Qdrant 1.19 ignores a condition of must_not that is also one of must"));
    }
    let meets = |condition: &Condition| meets(condition, id, point);
    for condition in &filter.must {
        if !meets(condition)? {
            return Ok(false);
        }
    }
    for condition in &filter.must_not {
        if meets(condition)? {
            return Ok(false);
        }
    }
    let mut is_any = filter.should.is_empty();
    for condition in &filter.should {
        is_any |= meets(condition)?;
    }
    Ok(is_any)
}

fn meets(condition: &Condition, id: u128, point: &StoredPoint) -> Result<bool, Status> {
    match condition.condition_one_of.as_ref() {
        Some(ConditionOneOf::Filter(filter)) => matches(filter, id, point),
        Some(ConditionOneOf::HasId(ids)) => {
            let ids: Vec<u128> = ids.has_id.iter().map(id_number).collect::<Result<_, _>>()?;
            Ok(ids.contains(&id))
        }
        Some(ConditionOneOf::Field(field)) => meets_field(field, &point.payload),
        other => Err(Status::unimplemented(format!("condition {other:?}"))),
    }
}

/// An array meets a condition if one of its elements does.
fn meets_field(field: &FieldCondition, payload: &HashMap<String, Value>) -> Result<bool, Status> {
    let Some(value) = find(&field.key, payload)? else { return Ok(false) };
    let elements = match &value.kind {
        Some(Kind::ListValue(list)) => list.values.iter().collect(),
        _ => vec![value],
    };
    let mut is_met = false;
    for element in elements {
        is_met |= match (&field.r#match, &field.range) {
            (Some(one), None) => equals(one.match_value.as_ref(), element)?,
            (None, Some(range)) => is_within(range, element),
            other => return Err(Status::unimplemented(format!("field condition {other:?}"))),
        };
    }
    Ok(is_met)
}

fn equals(expected: Option<&MatchValue>, value: &Value) -> Result<bool, Status> {
    Ok(match (expected, value.kind.as_ref()) {
        (Some(MatchValue::Keyword(keyword)), Some(Kind::StringValue(text))) => text == keyword,
        (Some(MatchValue::Keywords(any)), Some(Kind::StringValue(text))) => any.strings.contains(text),
        (Some(MatchValue::Prefix(prefix)), Some(Kind::StringValue(text))) => {
            text.starts_with(prefix.as_str())
        }
        (Some(MatchValue::Integer(expected)), Some(Kind::IntegerValue(number))) => number == expected,
        (
            Some(
                MatchValue::Keyword(_)
                | MatchValue::Keywords(_)
                | MatchValue::Prefix(_)
                | MatchValue::Integer(_),
            ),
            _,
        ) => false,
        (other, _) => return Err(Status::unimplemented(format!("match {other:?}"))),
    })
}

fn is_within(range: &Range, value: &Value) -> bool {
    let number = match value.kind {
        Some(Kind::DoubleValue(number)) => number,
        Some(Kind::IntegerValue(number)) => number as f64,
        _ => return false,
    };
    range.lt.is_none_or(|end| number < end)
        && range.gt.is_none_or(|end| number > end)
        && range.lte.is_none_or(|end| number <= end)
        && range.gte.is_none_or(|end| number >= end)
}

/// The value at a path such as `a.b[3]`.
fn find<'p>(path: &str, payload: &'p HashMap<String, Value>) -> Result<Option<&'p Value>, Status> {
    let (mut fields, mut found) = (Some(payload), None);
    for step in path.split('.') {
        let (name, index) = match step.split_once('[') {
            Some((name, index)) => (name, Some(index)),
            None => (step, None),
        };
        if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-') {
            return Err(Status::invalid_argument(format!("path {path} needs quotes")));
        }
        found = fields.and_then(|fields| fields.get(name));
        if let Some(index) = index {
            let index: usize = index.strip_suffix(']').and_then(|index| index.parse().ok()).unwrap();
            found = match found.and_then(|value| value.kind.as_ref()) {
                Some(Kind::ListValue(list)) => list.values.get(index),
                _ => None,
            };
        }
        fields = match found.and_then(|value| value.kind.as_ref()) {
            Some(Kind::StructValue(object)) => Some(&object.fields),
            _ => None,
        };
    }
    Ok(found)
}
