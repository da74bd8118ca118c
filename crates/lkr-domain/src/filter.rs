//! Expressions that select documents by their fields.

mod field;
mod number;
mod parse;
mod print;
mod time;
mod value;

#[cfg(test)]
mod tests;

use std::fmt;

pub use self::{
    field::{FieldValue, FilterField},
    number::Number,
    time::Instant,
    value::{Operand, Range, RangeEnd, ValueTest},
};
use crate::Document;

/// An expression that selects documents by their fields.
///
/// It is canonical: two expressions that were parsed from the same JSON, apart from the order and the repetition of the
/// values of `in` and the spelling of numbers and times, are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FilterExpr {
    /// Every expression matches. Parsed expressions have at least one.
    And(Vec<Self>),
    /// At least one expression matches. Parsed expressions have at least one.
    Or(Vec<Self>),
    /// The expression does not match.
    Not(Box<Self>),
    /// The value of the field passes the test.
    Field(FilterField, ValueTest),
}

/// Why JSON is no filter expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    /// Where the error is, from the name of the expression on, such as `where.and[2].gte`.
    pub place: String,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for FilterError {}

impl FilterExpr {
    /// Parses an expression. `name` begins the places in errors.
    ///
    /// # Errors
    /// The first place that is wrong.
    pub fn parse(name: &str, json: &serde_json::Value) -> Result<Self, FilterError> {
        parse::expression(name, json)
    }

    /// The canonical JSON, which parses as an equal expression.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        print::expression(self)
    }

    /// Whether a document matches.
    #[must_use]
    pub fn matches(&self, document: &Document) -> bool {
        match self {
            Self::And(all) => all.iter().all(|expr| expr.matches(document)),
            Self::Or(any) => any.iter().any(|expr| expr.matches(document)),
            Self::Not(expr) => !expr.matches(document),
            Self::Field(field, test) => field.value_in(document).passes(test),
        }
    }
}
