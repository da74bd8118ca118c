use std::{collections::HashSet, hash::Hash};

use lkr_domain::CharSpan;

/// The items of a ranking, each where it stands first.
#[must_use]
pub fn distinct<T: Eq + Hash + Clone>(ranking: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    ranking.into_iter().filter(|item| seen.insert(item.clone())).collect()
}

/// What a chunk stands for: of the judged units of its document the one that it overlaps most, of equals the first;
/// `None` where it overlaps none.
#[must_use]
pub fn stands_for<T>(chunk: CharSpan, units: &[(CharSpan, T)]) -> Option<&T> {
    let overlaps = units.iter().map(|(span, unit)| (overlap(chunk, *span), unit));
    let best = overlaps.fold(None, |best: Option<(u32, &T)>, (overlap, unit)| match best {
        Some((most, _)) if most >= overlap => best,
        _ if overlap == 0 => best,
        _ => Some((overlap, unit)),
    });
    best.map(|(_, unit)| unit)
}

/// How many code points two spans share.
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
    fn items_count_where_they_stand_first() {
        assert_eq!(distinct(["a", "b", "a", "c", "b"]), ["a", "b", "c"]);
    }

    #[test]
    fn a_chunk_stands_for_what_it_overlaps_most() {
        let units = [(span(0, 10), "a"), (span(10, 40), "b"), (span(50, 60), "c")];
        assert_eq!(stands_for(span(5, 20), &units), Some(&"b"));
        assert_eq!(stands_for(span(0, 18), &units), Some(&"a"));
        assert_eq!(stands_for(span(40, 50), &units), None);
        // Five of each: the first.
        assert_eq!(stands_for(span(5, 15), &units), Some(&"a"));
        assert_eq!(stands_for(span(20, 20), &units), None);
    }

    proptest! {
        #[test]
        fn no_other_unit_is_overlapped_more(
            (start, length) in (0_u32..90, 0_u32..30),
            units in prop::collection::vec((0_u32..100, 0_u32..20), 0..12),
        ) {
            let chunk = span(start, start + length);
            let units: Vec<_> =
                units.iter().enumerate().map(|(n, &(start, length))| (span(start, start + length), n)).collect();
            let most = units.iter().map(|(unit, _)| overlap(chunk, *unit)).max().unwrap_or(0);
            match stands_for(chunk, &units) {
                Some(&n) => prop_assert!(most > 0 && overlap(chunk, units[n].0) == most),
                None => prop_assert_eq!(most, 0),
            }
        }
    }
}
