//! The canonical JSON of an expression.

use serde_json::{Map, Value, json};

use super::{FilterExpr, Operand, Range, RangeEnd, ValueTest};

pub(super) fn expression(expr: &FilterExpr) -> Value {
    match expr {
        FilterExpr::And(all) => json!({ "and": all.iter().map(expression).collect::<Vec<_>>() }),
        FilterExpr::Or(any) => json!({ "or": any.iter().map(expression).collect::<Vec<_>>() }),
        FilterExpr::Not(expr) => json!({ "not": expression(expr) }),
        FilterExpr::Field(field, test) => {
            let mut object = Map::from_iter([("field".to_owned(), Value::from(field.name().into_owned()))]);
            object.extend(comparison(test).into_iter().map(|(op, value)| (op.to_owned(), value)));
            Value::Object(object)
        }
    }
}

fn comparison(test: &ValueTest) -> Vec<(&'static str, Value)> {
    match test {
        ValueTest::In(operands) => match operands.as_slice() {
            [one] => vec![("eq", operand(one))],
            operands => vec![("in", operands.iter().map(operand).collect())],
        },
        ValueTest::Range(range) => bounds(range),
        ValueTest::Prefix(prefix) => vec![("prefix", Value::from(prefix.as_str()))],
        ValueTest::Exists(exists) => vec![("exists", Value::from(*exists))],
    }
}

fn bounds(range: &Range) -> Vec<(&'static str, Value)> {
    let (lower, upper) = range.ends();
    let lower = lower.map(|end| (if end.is_included { "gte" } else { "gt" }, end_value(end)));
    let upper = upper.map(|end| (if end.is_included { "lte" } else { "lt" }, end_value(end)));
    lower.into_iter().chain(upper).collect()
}

fn end_value(end: &RangeEnd) -> Value {
    operand(&end.operand)
}

fn operand(operand: &Operand) -> Value {
    match operand {
        Operand::Number(number) => Value::from(number.value()),
        Operand::Instant(at) => Value::from(at.to_string()),
        Operand::Text(text) => Value::from(text.as_str()),
    }
}
