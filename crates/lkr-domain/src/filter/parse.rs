//! Parses expressions from JSON.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{FilterError, FilterExpr, FilterField, Instant, Number, Operand, Range, RangeEnd, ValueTest};

/// The most expressions in one, itself included.
const MAX_NODES: usize = 64;
/// The most expressions inside each other.
const MAX_DEPTH: usize = 8;
/// The most values of `in`.
const MAX_VALUES: usize = 1_000;

type Result<T> = std::result::Result<T, FilterError>;

pub(super) fn expression(name: &str, json: &Value) -> Result<FilterExpr> {
    Parser { place: name.to_owned(), nodes: 0, depth: 0 }.expression(json)
}

/// The state of parsing: where it is, and how many expressions it has seen.
struct Parser {
    place: String,
    nodes: usize,
    depth: usize,
}

impl Parser {
    fn expression(&mut self, json: &Value) -> Result<FilterExpr> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(self.error(format!("more than {MAX_NODES} expressions")));
        }
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("expressions are nested more than {MAX_DEPTH} deep")));
        }
        let Value::Object(object) = json else {
            return Err(self.error(format!("{} is no expression, which is an object", describe(json))));
        };
        self.depth += 1;
        let parsed =
            if object.contains_key("field") { self.comparison(object) } else { self.combination(object) };
        self.depth -= 1;
        parsed
    }

    /// `and`, `or` or `not`.
    fn combination(&mut self, object: &Map<String, Value>) -> Result<FilterExpr> {
        let mut keys = object.iter();
        let Some((key, json)) = keys.next() else {
            return Err(self.error("an empty object is no expression".to_owned()));
        };
        if let Some((unknown, _)) =
            object.iter().find(|(key, _)| !matches!(key.as_str(), "and" | "or" | "not"))
        {
            return self.within(unknown, |parser| {
                Err(parser.error("unknown key, expected and, or, not or field".to_owned()))
            });
        }
        if let Some((second, _)) = keys.next() {
            return self.within(second, |parser| Err(parser.error(format!("cannot stand beside {key}"))));
        }
        self.within(key, |parser| match key.as_str() {
            "and" => parser.list(json).map(FilterExpr::And),
            "or" => parser.list(json).map(FilterExpr::Or),
            _ => Ok(FilterExpr::Not(Box::new(parser.expression(json)?))),
        })
    }

    fn list(&mut self, json: &Value) -> Result<Vec<FilterExpr>> {
        let Value::Array(items) = json else {
            return Err(self.error(format!("{} is no list of expressions", describe(json))));
        };
        if items.is_empty() {
            return Err(self.error("the list is empty".to_owned()));
        }
        let parse = |(at, item)| self.at(at, |parser| parser.expression(item));
        items.iter().enumerate().map(parse).collect()
    }

    fn comparison(&mut self, object: &Map<String, Value>) -> Result<FilterExpr> {
        let field =
            self.within("field", |parser| parser.field(object.get("field").unwrap_or(&Value::Null)))?;
        let mut operators = object.iter().filter(|(key, _)| *key != "field");
        let Some((first, json)) = operators.next() else {
            let message = "no operator, expected eq, in, gt, gte, lt, lte, prefix or exists";
            return Err(self.error(message.to_owned()));
        };
        if let Some((unknown, _)) = object.iter().find(|(key, _)| *key != "field" && !is_operator(key)) {
            return self.within(unknown, |parser| {
                let message = "unknown operator, expected eq, in, gt, gte, lt, lte, prefix or exists";
                Err(parser.error(message.to_owned()))
            });
        }
        let Some((second, other)) = operators.next() else {
            return Ok(FilterExpr::Field(field.clone(), self.test(&field, first, json)?));
        };
        if let Some((third, _)) = operators.next() {
            return self.within(third, |parser| Err(parser.error("too many operators".to_owned())));
        }
        let range = self.between(&field, (first, json), (second, other))?;
        Ok(FilterExpr::Field(field, ValueTest::Range(range)))
    }

    fn field(&self, json: &Value) -> Result<FilterField> {
        let Value::String(name) = json else {
            return Err(self.error(format!("{} is no field name", describe(json))));
        };
        FilterField::from_name(name).ok_or_else(|| {
            let fixed = FilterField::FIXED.map(|field| field.name().into_owned()).join(", ");
            self.error(format!("unknown field {name:?}, expected {fixed} or metadata. followed by a key"))
        })
    }

    fn test(&mut self, field: &FilterField, operator: &str, json: &Value) -> Result<ValueTest> {
        self.within(operator, |parser| match operator {
            "eq" => Ok(ValueTest::any_of([parser.operand(field, json)?])),
            "in" => parser.values(field, json),
            "prefix" => match json {
                Value::String(_) if field.is_time() => {
                    Err(parser.error(format!("{field} is compared by time and has no prefix")))
                }
                Value::String(prefix) => Ok(ValueTest::Prefix(prefix.clone())),
                _ => Err(parser.error(format!("{} is no string", describe(json)))),
            },
            "exists" => match json {
                Value::Bool(exists) => Ok(ValueTest::Exists(*exists)),
                _ => Err(parser.error(format!("{} is neither true nor false", describe(json)))),
            },
            _ => {
                let end =
                    RangeEnd { operand: parser.operand(field, json)?, is_included: operator.ends_with('e') };
                Ok(ValueTest::Range(if is_lower(operator) { Range::From(end) } else { Range::To(end) }))
            }
        })
    }

    fn values(&mut self, field: &FilterField, json: &Value) -> Result<ValueTest> {
        let Value::Array(values) = json else {
            return Err(self.error(format!("{} is no list of values", describe(json))));
        };
        if values.is_empty() {
            return Err(self.error("the list is empty".to_owned()));
        }
        if values.len() > MAX_VALUES {
            return Err(self.error(format!("{} values, at most {MAX_VALUES} are allowed", values.len())));
        }
        let parse = |(at, value)| self.at(at, |parser| parser.operand(field, value));
        Ok(ValueTest::any_of(values.iter().enumerate().map(parse).collect::<Result<Vec<_>>>()?))
    }

    /// A lower and an upper bound.
    fn between(
        &mut self,
        field: &FilterField,
        first: (&String, &Value),
        second: (&String, &Value),
    ) -> Result<Range> {
        let mut pair = [first, second];
        pair.sort_by_key(|(operator, _)| !is_lower(operator));
        let [(lower, _), (upper, _)] = pair;
        if !is_lower(lower) || !is_upper(upper) {
            return self
                .within(second.0, |parser| Err(parser.error(format!("cannot stand beside {}", first.0))));
        }
        let [lower, upper] = pair.map(|(operator, json)| {
            let end = self.within(operator, |parser| parser.operand(field, json));
            end.map(|operand| RangeEnd { operand, is_included: operator.ends_with('e') })
        });
        let (lower, upper) = (lower?, upper?);
        if std::mem::discriminant(&lower.operand) != std::mem::discriminant(&upper.operand) {
            let (lower, upper) = (type_name(&lower.operand), type_name(&upper.operand));
            let [_, (operator, _)] = pair;
            return self.within(operator, |parser| {
                Err(parser.error(format!("the upper bound is {upper}, but the lower bound is {lower}")))
            });
        }
        Ok(Range::Between(lower, upper))
    }

    fn operand(&self, field: &FilterField, json: &Value) -> Result<Operand> {
        let operand = match json {
            Value::String(text) => {
                Instant::parse(text).map_or_else(|| Operand::Text(text.clone()), Operand::Instant)
            }
            Value::Number(number) => {
                let number = number.as_f64().and_then(Number::new);
                number
                    .map(Operand::Number)
                    .ok_or_else(|| self.error("the number is not finite".to_owned()))?
            }
            _ => return Err(self.error(format!("{} is neither a string nor a number", describe(json)))),
        };
        if field.is_time() && !matches!(operand, Operand::Instant(_)) {
            return Err(
                self.error(format!("{json} is no date or time of RFC 3339, by which {field} is compared"))
            );
        }
        Ok(operand)
    }

    /// Parses what is under `key`.
    fn within<T>(&mut self, key: &str, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let length = self.place.len();
        // Writing to a string does not fail.
        let _ = write!(self.place, ".{key}");
        let parsed = parse(self);
        self.place.truncate(length);
        parsed
    }

    /// Parses an item of a list.
    fn at<T>(&mut self, at: usize, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let length = self.place.len();
        let _ = write!(self.place, "[{at}]");
        let parsed = parse(self);
        self.place.truncate(length);
        parsed
    }

    fn error(&self, problem: String) -> FilterError {
        FilterError { place: self.place.clone(), problem }
    }
}

fn is_operator(key: &str) -> bool {
    matches!(key, "eq" | "in" | "prefix" | "exists") || is_lower(key) || is_upper(key)
}

fn is_lower(key: &str) -> bool {
    matches!(key, "gt" | "gte")
}

fn is_upper(key: &str) -> bool {
    matches!(key, "lt" | "lte")
}

const fn type_name(operand: &Operand) -> &'static str {
    match operand {
        Operand::Number(_) => "a number",
        Operand::Instant(_) => "a date or time",
        Operand::Text(_) => "a string",
    }
}

const fn describe(json: &Value) -> &'static str {
    match json {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
