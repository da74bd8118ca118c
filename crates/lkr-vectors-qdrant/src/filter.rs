//! Filters as Qdrant evaluates them.

use lkr_vectors::{Condition, Filter};
use qdrant_client::qdrant::{
    self, FieldCondition, HasIdCondition, Match, Range, RepeatedStrings, condition::ConditionOneOf,
    r#match::MatchValue,
};

use crate::{indexes::FieldIndex, point, tag_fields, token, value_filter};

/// What a part of a filter means.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "few exist, and not for long")]
pub(crate) enum Meaning {
    /// Every point matches.
    All,
    /// No point matches.
    Nothing,
    /// The points that match this condition.
    If(ConditionOneOf),
}

/// A filter in Qdrant's form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Translated {
    /// `None` if no point matches.
    pub(crate) filter: Option<qdrant::Filter>,
    /// The fields that it compares and that may have no index yet.
    pub(crate) fields: Vec<FieldIndex>,
}

/// The points of a filter that also meet a condition.
pub(crate) fn translate(filter: &Filter, scope: Meaning) -> Translated {
    let mut fields = Vec::new();
    let meaning = all_of([scope, of_filter(filter, &mut fields)]);
    Translated { filter: into_filter(meaning), fields }
}

/// The filter of a meaning; `None` if no point matches.
pub(crate) fn into_filter(meaning: Meaning) -> Option<qdrant::Filter> {
    match meaning {
        Meaning::All => Some(qdrant::Filter::default()),
        Meaning::Nothing => None,
        Meaning::If(ConditionOneOf::Filter(filter)) => Some(filter),
        Meaning::If(one) => Some(qdrant::Filter { must: vec![condition(one)], ..qdrant::Filter::default() }),
    }
}

fn of_filter(filter: &Filter, fields: &mut Vec<FieldIndex>) -> Meaning {
    let must: Vec<Meaning> = filter.must.iter().map(|one| of_condition(one, fields)).collect();
    let must_not: Vec<Meaning> = filter.must_not.iter().map(|one| of_condition(one, fields)).collect();
    all_of(must.into_iter().chain(must_not.into_iter().map(not)))
}

fn of_condition(condition: &Condition, fields: &mut Vec<FieldIndex>) -> Meaning {
    match condition {
        Condition::Ids(ids) if ids.is_empty() => Meaning::Nothing,
        Condition::Ids(ids) => {
            let has_id = ids.iter().copied().map(point::encode_id).collect();
            Meaning::If(ConditionOneOf::HasId(HasIdCondition { has_id }))
        }
        Condition::Docs(docs) => {
            any_keyword(point::DOC_ID, docs.iter().map(|doc| point::uuid(doc.as_bytes())))
        }
        Condition::Revision(doc, revision) => all_of([
            any_keyword(point::DOC_ID, [point::uuid(doc.as_bytes())]),
            matches(point::REVISION, MatchValue::Integer(revision.cast_signed())),
        ]),
        Condition::Tag { key, any } => any_token(any.iter().map(|value| token::text(key, value))),
        Condition::Value { key, test } => value_filter::passing(key, test, fields),
        Condition::Any(filters) => any_of(filters.iter().map(|filter| of_filter(filter, fields))),
    }
}

/// The points with one of the tokens.
pub(crate) fn any_token(tokens: impl IntoIterator<Item = String>) -> Meaning {
    any_keyword(tag_fields::TOKENS, tokens)
}

fn any_keyword(field: &str, keywords: impl IntoIterator<Item = String>) -> Meaning {
    let strings: Vec<String> = keywords.into_iter().collect();
    if strings.is_empty() {
        return Meaning::Nothing;
    }
    matches(field, MatchValue::Keywords(RepeatedStrings { strings }))
}

pub(crate) fn matches(field: &str, value: MatchValue) -> Meaning {
    let r#match = Some(Match { match_value: Some(value) });
    Meaning::If(ConditionOneOf::Field(FieldCondition {
        key: field.to_owned(),
        r#match,
        ..FieldCondition::default()
    }))
}

pub(crate) fn in_range(field: String, range: Range) -> Meaning {
    Meaning::If(ConditionOneOf::Field(FieldCondition {
        key: field,
        range: Some(range),
        ..FieldCondition::default()
    }))
}

pub(crate) fn not(meaning: Meaning) -> Meaning {
    match meaning {
        Meaning::All => Meaning::Nothing,
        Meaning::Nothing => Meaning::All,
        Meaning::If(one) => {
            let must_not = vec![condition(one)];
            Meaning::If(ConditionOneOf::Filter(qdrant::Filter { must_not, ..qdrant::Filter::default() }))
        }
    }
}

/// Negations are in a filter of their own: Qdrant 1.19 does not evaluate the conditions of `must_not` that equal one of
/// `must` in the same filter.
pub(crate) fn all_of(meanings: impl IntoIterator<Item = Meaning>) -> Meaning {
    let (mut must, mut must_not) = (Vec::new(), Vec::new());
    for meaning in meanings {
        match meaning {
            Meaning::All => {}
            Meaning::Nothing => return Meaning::Nothing,
            // A conjunction in a conjunction needs no level of its own.
            Meaning::If(ConditionOneOf::Filter(filter)) if filter.should.is_empty() => {
                must.extend(filter.must);
                must_not.extend(filter.must_not);
            }
            Meaning::If(one) => must.push(condition(one)),
        }
    }
    if must_not.is_empty() && must.is_empty() {
        return Meaning::All;
    }
    let mut all = qdrant::Filter { must_not, ..qdrant::Filter::default() };
    if !must.is_empty() {
        if !all.must_not.is_empty() {
            must.push(condition(ConditionOneOf::Filter(all)));
        }
        all = qdrant::Filter { must, ..qdrant::Filter::default() };
    }
    Meaning::If(ConditionOneOf::Filter(all))
}

pub(crate) fn any_of(meanings: impl IntoIterator<Item = Meaning>) -> Meaning {
    let mut should = Vec::new();
    for meaning in meanings {
        match meaning {
            Meaning::All => return Meaning::All,
            Meaning::Nothing => {}
            Meaning::If(one) => should.push(condition(one)),
        }
    }
    if should.is_empty() {
        return Meaning::Nothing;
    }
    Meaning::If(ConditionOneOf::Filter(qdrant::Filter { should, ..qdrant::Filter::default() }))
}

fn condition(one: ConditionOneOf) -> qdrant::Condition {
    qdrant::Condition { condition_one_of: Some(one) }
}
