//! Equal stretches of two sequences of letters.

use std::{collections::HashMap, ops::Range};

use super::{letters::Letters, subsequence::common_subsequence};

/// The lengths from which a stretch is claimed wherever it is, in the order in which they are tried.
const LENGTHS: [usize; 2] = [24, 8];

/// From this length a stretch is claimed if it is beside the place of its neighbour, or nowhere else.
const SHORT_LENGTH: usize = 3;

/// How far from the place of its neighbour a short stretch may be, in letters.
const NEIGHBOURHOOD: usize = 200;

/// Most places of a stretch that are compared.
const MAX_PLACES: usize = 64;

/// Most pairs of letters of a gap that are compared one by one.
const MAX_PAIRS: usize = 250_000;

/// For each letter of `text` its index in `page`, if it was found there. No index occurs twice. The time is about linear:
/// the work for each letter is bounded.
pub(super) fn align(text: &Letters, page: &Letters) -> Vec<Option<usize>> {
    let (found, claimed) = (vec![None; text.letters.len()], vec![false; page.letters.len()]);
    let mut alignment = Alignment { text, page, found, claimed };
    // Whole words first: otherwise the end of one word and the start of another may be claimed for two others.
    for unit in [Unit::Words, Unit::Letters] {
        for length in LENGTHS {
            alignment.claim_stretches(length, unit, |_, _| true);
        }
    }
    alignment.claim_stretches(SHORT_LENGTH, Unit::Letters, |place, expected| {
        place.is_only_one || place.start.abs_diff(expected) <= NEIGHBOURHOOD
    });
    alignment.fill_gaps();
    alignment.claim_words();
    alignment.found
}

/// What stretches consist of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Whole words of both sides.
    Words,
    /// Letters.
    Letters,
}

struct Alignment<'a> {
    text: &'a Letters,
    page: &'a Letters,
    found: Vec<Option<usize>>,
    claimed: Vec<bool>,
}

/// A place of a stretch on the page.
struct Place {
    start: usize,
    length: usize,
    /// Whether the stretch has no other place.
    is_only_one: bool,
}

impl Alignment<'_> {
    /// Claims the stretches of at least this length that are on the page and accepted there. `accepts` gets the place and
    /// the one that follows the last stretch.
    fn claim_stretches(&mut self, length: usize, unit: Unit, accepts: impl Fn(&Place, usize) -> bool) {
        let places = unclaimed_stretches(self.page, &self.claimed, length, unit);
        let (mut at, mut expected) = (0, 0);
        while let Some(stretch) = self.text.letters.get(at..at + length) {
            if let Some(found) = self.found.get(at).copied().flatten() {
                (at, expected) = (at + 1, found + 1);
                continue;
            }
            let begins = unit == Unit::Letters || self.text.is_boundary(at);
            let starts = places.get(stretch).filter(|_| begins).map(Vec::as_slice).unwrap_or_default();
            match self.best_place(at, length, unit, starts, expected).filter(|place| accepts(place, expected))
            {
                Some(place) => {
                    self.claim(at, &place);
                    (at, expected) = (at + place.length, place.start + place.length);
                }
                None => at += 1,
            }
        }
    }

    /// The place with the longest stretch; of several, the one that is nearest to `expected`.
    fn best_place(
        &self,
        at: usize,
        length: usize,
        unit: Unit,
        starts: &[usize],
        expected: usize,
    ) -> Option<Place> {
        // The places around the expected one, of those that are in order.
        let next = starts.partition_point(|start| *start < expected);
        let near = next.saturating_sub(MAX_PLACES / 2)..starts.len().min(next + MAX_PLACES / 2);
        let common = |start: &usize| (self.common(at, *start, unit), *start);
        let unclaimed = starts.get(near).unwrap_or_default().iter().map(common);
        let fitting = unclaimed.filter(|(common, _)| *common >= length);
        let is_only_one = fitting.clone().count() == 1;
        let (length, start) =
            fitting.max_by_key(|(common, start)| (*common, usize::MAX - start.abs_diff(expected)))?;
        Some(Place { start, length, is_only_one })
    }

    /// How many letters from here on are equal and have no place yet, up to the end of a unit on both sides.
    fn common(&self, at: usize, start: usize, unit: Unit) -> usize {
        let (text, found) = (self.text.letters.iter().skip(at), self.found.iter().skip(at));
        let (page, claimed) = (self.page.letters.iter().skip(start), self.claimed.iter().skip(start));
        let pairs = text.zip(found).zip(page.zip(claimed));
        let is_free = |((a, found), (b, claimed)): &((&char, &Option<usize>), (&char, &bool))| {
            a == b && found.is_none() && !**claimed
        };
        let common = pairs.take_while(is_free).count();
        let is_end = |length: &usize| {
            unit == Unit::Letters
                || (self.text.is_boundary(at + length) && self.page.is_boundary(start + length))
        };
        (0..=common).rev().find(is_end).unwrap_or(0)
    }

    fn claim(&mut self, at: usize, place: &Place) {
        let page = place.start..place.start + place.length;
        for (found, index) in self.found.iter_mut().skip(at).zip(page) {
            *found = Some(index);
            if let Some(claimed) = self.claimed.get_mut(index) {
                *claimed = true;
            }
        }
    }

    /// Claims the words that are left on both sides equally often. Which is which may be wrong, but together they are right.
    fn claim_words(&mut self) {
        let (text, page) = (self.text, self.page);
        let mut left: HashMap<&[char], (Vec<usize>, Vec<usize>)> = HashMap::new();
        let has_no_place = |word: &Range<usize>| {
            self.found.get(word.clone()).is_some_and(|found| found.iter().all(Option::is_none))
        };
        for word in text.words().filter(has_no_place) {
            if let Some(letters) = text.letters.get(word.clone()) {
                left.entry(letters).or_default().0.push(word.start);
            }
        }
        let is_unclaimed = |word: &Range<usize>| {
            self.claimed.get(word.clone()).is_some_and(|claimed| !claimed.contains(&true))
        };
        for word in page.words().filter(is_unclaimed) {
            if let Some((_, places)) =
                page.letters.get(word.clone()).and_then(|letters| left.get_mut(letters))
            {
                places.push(word.start);
            }
        }
        for (letters, (words, places)) in left {
            if words.len() == places.len() {
                for (at, start) in words.into_iter().zip(places) {
                    self.claim(at, &Place { start, length: letters.len(), is_only_one: false });
                }
            }
        }
    }

    /// Compares what is left between two letters whose places are in order, and at both ends.
    fn fill_gaps(&mut self) {
        let mut at = 0;
        while at < self.text.letters.len() {
            let gap = at..at + self.found.iter().skip(at).take_while(|found| found.is_none()).count();
            if gap.is_empty() {
                at += 1;
                continue;
            }
            at = gap.end;
            if let Some(page) = self.free_page(&gap) {
                self.fill_gap(gap, page);
            }
        }
    }

    /// The unclaimed letters of the page between those that enclose a gap of the text.
    fn free_page(&self, gap: &Range<usize>) -> Option<Range<usize>> {
        let before = gap.start.checked_sub(1).and_then(|last| self.found.get(last).copied().flatten());
        let after = self.found.get(gap.end).copied().flatten();
        let start = before.map(|before| before + 1);
        let is_free = |index: &usize| self.claimed.get(*index) == Some(&false);
        match (start, after) {
            (Some(start), Some(end)) if start <= end && (start..end).all(|index| is_free(&index)) => {
                Some(start..end)
            }
            // The neighbours are apart: what is free beside the first one, at most as long as the gap.
            (Some(start), _) => {
                let free = (start..).take(gap.len()).take_while(is_free).count();
                Some(start..start + free)
            }
            (None, Some(end)) => {
                let free = (0..end).rev().take(gap.len()).take_while(is_free).count();
                Some(end - free..end)
            }
            (None, None) => Some(0..self.page.letters.len()),
        }
        .filter(|page| !page.is_empty() && page.len().saturating_mul(gap.len()) <= MAX_PAIRS)
    }

    /// Claims the longest common subsequence of a gap and the free letters of the page, if it has most letters of either.
    fn fill_gap(&mut self, gap: Range<usize>, page: Range<usize>) {
        let (text, letters) = (self.text.letters.get(gap.clone()), self.page.letters.get(page.clone()));
        let (Some(text), Some(letters)) = (text, letters) else { return };
        let pairs = common_subsequence(text, letters);
        // Fewer letters are equal by chance.
        if pairs.len() * 3 < text.len().min(letters.len()) * 2 {
            return;
        }
        for (at, index) in pairs {
            self.claim(gap.start + at, &Place { start: page.start + index, length: 1, is_only_one: false });
        }
    }
}

/// The stretches of this length on a page, with the unclaimed places where they start.
fn unclaimed_stretches<'a>(
    page: &'a Letters,
    claimed: &[bool],
    length: usize,
    unit: Unit,
) -> HashMap<&'a [char], Vec<usize>> {
    let mut places: HashMap<&[char], Vec<usize>> = HashMap::new();
    for (start, (stretch, claimed)) in page.letters.windows(length).zip(claimed).enumerate() {
        if !claimed && (unit == Unit::Letters || page.is_boundary(start)) {
            places.entry(stretch).or_default().push(start);
        }
    }
    places
}
