use std::{collections::HashSet, hash::Hash};

use lkr_domain::CharSpan;

/// The items of a ranking without duplicates; the first occurrence counts.
#[must_use]
pub fn distinct<T: Eq + Hash + Clone>(ranking: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    ranking.into_iter().filter(|item| seen.insert(item.clone())).collect()
}

/// The judged unit that a chunk overlaps most, the first among equals; `None` if it overlaps none. `units` are those of
/// the chunk's document.
#[must_use]
pub fn most_overlapping<T>(chunk: CharSpan, units: &[(CharSpan, T)]) -> Option<&T> {
    let overlaps = units.iter().map(|(span, unit)| (overlap(chunk, *span), unit));
    let best = overlaps.fold(None, |best: Option<(u32, &T)>, (overlap, unit)| match best {
        Some((most, _)) if most >= overlap => best,
        _ if overlap == 0 => best,
        _ => Some((overlap, unit)),
    });
    best.map(|(_, unit)| unit)
}

/// The number of code points that two spans share.
fn overlap(a: CharSpan, b: CharSpan) -> u32 {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn span(start: u32, end: u32) -> CharSpan {
        CharSpan { start, end }
    }

    #[test]
    fn distinct_keeps_first_occurrences() {
        assert_eq!(distinct(["a", "b", "a", "c", "b"]), ["a", "b", "c"]);
    }

    #[test]
    fn most_overlapping_returns_the_first_unit_with_the_largest_overlap() {
        let units = [(span(0, 10), "a"), (span(10, 40), "b"), (span(50, 60), "c")];
        assert_eq!(most_overlapping(span(5, 20), &units), Some(&"b"));
        assert_eq!(most_overlapping(span(0, 18), &units), Some(&"a"));
        assert_eq!(most_overlapping(span(40, 50), &units), None);
        // An overlap of five with each: the first.
        assert_eq!(most_overlapping(span(5, 15), &units), Some(&"a"));
        assert_eq!(most_overlapping(span(20, 20), &units), None);
    }

    proptest! {
        #[test]
        fn most_overlapping_has_the_maximal_overlap(
            (start, length) in (0_u32..90, 0_u32..30),
            units in prop::collection::vec((0_u32..100, 0_u32..20), 0..12),
        ) {
            let chunk = span(start, start + length);
            let units: Vec<_> =
                units.iter().enumerate().map(|(n, &(start, length))| (span(start, start + length), n)).collect();
            let most = units.iter().map(|(unit, _)| overlap(chunk, *unit)).max().unwrap_or(0);
            match most_overlapping(chunk, &units) {
                Some(&n) => prop_assert!(most > 0 && overlap(chunk, units[n].0) == most),
                None => prop_assert_eq!(most, 0),
            }
        }
    }
}
