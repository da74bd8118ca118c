//! The terms of every unit, as numbers.

use std::collections::HashMap;

use lkr_text::DocumentTerms;

use crate::unit::Unit;

/// The terms of a document's units, numbered by first occurrence.
#[derive(Debug)]
pub(crate) struct Terms {
    ids: Vec<u32>,
    /// The end of each unit's terms in `ids`.
    ends: Vec<usize>,
}

impl Terms {
    /// The terms of these units, whose words `document` learns.
    pub(crate) fn new(text: &str, units: &[Unit], document: &mut DocumentTerms) -> Self {
        let mut numbers: HashMap<Box<str>, u32> = HashMap::new();
        let mut terms = Self { ids: Vec::new(), ends: Vec::with_capacity(units.len()) };
        for unit in units {
            document.learn(text.get(unit.range.clone()).unwrap_or_default(), |term| {
                let number = numbers.get(term).copied().unwrap_or_else(|| {
                    let next = numbers.len() as u32;
                    numbers.insert(term.into(), next);
                    next
                });
                terms.ids.push(number);
            });
            terms.ends.push(terms.ids.len());
        }
        terms
    }

    /// The terms of a unit in order.
    pub(crate) fn of(&self, unit: usize) -> &[u32] {
        let end = self.ends.get(unit).copied().unwrap_or_default();
        let start = unit.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        self.ids.get(start..end).unwrap_or_default()
    }
}
