use lkr_domain::CharSpan;

/// The distance in code points between two noted byte positions.
const STRIDE: usize = 256;

/// Finds the byte positions of code points without walking the whole text each time.
pub(crate) struct CharIndex {
    /// The byte position of every [`STRIDE`]th code point.
    positions: Vec<usize>,
}

impl CharIndex {
    pub(crate) fn new(text: &str) -> Self {
        Self { positions: text.char_indices().step_by(STRIDE).map(|(byte, _)| byte).collect() }
    }

    /// The part of `text`, for which the index was made, that a span covers.
    pub(crate) fn slice<'t>(&self, text: &'t str, span: CharSpan) -> &'t str {
        let range = self.byte(text, span.start)..self.byte(text, span.end);
        text.get(range).unwrap_or_default()
    }

    fn byte(&self, text: &str, code_point: u32) -> usize {
        let code_point = code_point as usize;
        let Some(&from) = self.positions.get(code_point / STRIDE) else { return text.len() };
        let rest = text.get(from..).unwrap_or_default();
        rest.char_indices().nth(code_point % STRIDE).map_or(text.len(), |(byte, _)| from + byte)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn slice_equals_the_code_points_of_the_span(text in "(a|é|😀){0,700}", start in 0_u32..800, length in 0_u32..800) {
            let span = CharSpan { start, end: start + length };
            let expected: String = text.chars().skip(start as usize).take(length as usize).collect();
            prop_assert_eq!(CharIndex::new(&text).slice(&text, span), expected);
        }
    }
}
