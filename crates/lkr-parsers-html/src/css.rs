//! CSS as far as it decides whether text is visible.

mod color;
mod syntax;
mod value;

use std::collections::BTreeMap;

pub(crate) use color::Color;
pub(crate) use syntax::{Declarations, Rules};
pub(crate) use value::{Property, Value};

/// Which of several declarations of a property wins: the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Precedence {
    is_important: bool,
    specificity: Specificity,
    order: usize,
}

/// How specific the source of a declaration is, least specific first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Specificity {
    Tag,
    Class,
    Id,
    /// A rule that may apply, such as one with `:hover`.
    Conditional,
    /// The element's own `style` attribute.
    Inline,
}

/// The winning value of each property of an element.
#[derive(Debug, Clone, Default)]
pub(crate) struct Style(BTreeMap<Property, (Precedence, Value)>);

impl Style {
    pub(crate) fn new(declarations: &Declarations, specificity: Specificity, order: usize) -> Self {
        let mut style = Self::default();
        for (property, value) in &declarations.items {
            let (value, is_important) = match value.split_once('!') {
                Some((value, mark)) if mark.trim().eq_ignore_ascii_case("important") => (value, true),
                Some(_) => continue,
                None => (value.as_str(), false),
            };
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_lowercase();
            let precedence = Precedence { is_important, specificity, order };
            for (property, value) in value::read(property, &value) {
                style.add(property, precedence, value);
            }
        }
        style
    }

    /// Adds a presentational hint: the value of an attribute other than `style`. All rules override it.
    pub(crate) fn add_hint(&mut self, property: Property, value: Value) {
        let precedence = Precedence { is_important: false, specificity: Specificity::Tag, order: 0 };
        self.add(property, precedence, value);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (property, (precedence, value)) in &other.0 {
            self.add(*property, *precedence, *value);
        }
    }

    pub(crate) fn retain(&mut self, is_kept: impl Fn(Property, Value) -> bool) {
        self.0.retain(|property, (_, value)| is_kept(*property, *value));
    }

    /// Makes all colours unknown, for rules that may not apply.
    pub(crate) fn forget_colors(&mut self) {
        for (_, value) in self.0.values_mut() {
            if let Value::Color(color) = value {
                *color = Color::Unknown;
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, property: Property) -> Option<Value> {
        self.0.get(&property).map(|(_, value)| *value)
    }

    /// Whether a property has a value that hides text or contributes to hiding it.
    pub(crate) fn is_set(&self, property: Property) -> bool {
        self.get(property) == Some(Value::Flag(true))
    }

    /// Whether any property hides the element by itself.
    pub(crate) fn hides(&self) -> bool {
        self.0.iter().any(|(property, (_, value))| property.is_hiding() && *value == Value::Flag(true))
    }

    pub(crate) fn color(&self, property: Property) -> Option<Color> {
        match self.get(property)? {
            Value::Color(color) => Some(color),
            _ => None,
        }
    }

    fn add(&mut self, property: Property, precedence: Precedence, value: Value) {
        let entry = self.0.entry(property).or_insert((precedence, value));
        if precedence >= entry.0 {
            *entry = (precedence, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(css: &str, specificity: Specificity, order: usize) -> Style {
        Style::new(&Declarations::parse(css), specificity, order)
    }

    #[test]
    fn declaration_with_highest_precedence_wins() {
        let inline = |css: &str| style(css, Specificity::Inline, 0);
        assert!(inline("display:none;display:bogus").is_set(Property::Display));
        assert!(inline("display:none!important;display:block").is_set(Property::Display));
        assert!(!inline("display:none;display:block").is_set(Property::Display));
        assert!(!inline("display:none !bogus").is_set(Property::Display));
        let mut merged = inline("display:block");
        merged.merge(&style("display:none", Specificity::Id, 1));
        assert!(!merged.is_set(Property::Display));
        merged.merge(&style("display:none!important", Specificity::Tag, 1));
        assert!(merged.is_set(Property::Display));
    }
}
