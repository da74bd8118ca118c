//! Forms batches of texts.

/// The range of texts in each batch. Batches consist of consecutive texts of `lengths` tokens, have at most `limit`
/// tokens (a longer text is a batch of its own) and are of about equal size.
pub(crate) fn balanced(lengths: &[usize], limit: usize) -> Vec<std::ops::Range<usize>> {
    let total: usize = lengths.iter().sum();
    let target = total.div_ceil(total.div_ceil(limit.max(1)).max(1));
    let mut batches = Vec::new();
    let (mut start, mut tokens) = (0, 0);
    for (index, &length) in lengths.iter().enumerate() {
        if tokens > 0 && (tokens + length > limit || tokens + length / 2 > target) {
            batches.push(start..index);
            (start, tokens) = (index, 0);
        }
        tokens += length;
    }
    if start < lengths.len() {
        batches.push(start..lengths.len());
    }
    batches
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_texts_make_equal_batches() {
        let sizes: Vec<usize> = balanced(&[200; 32], 2048).into_iter().map(|range| range.len()).collect();
        assert_eq!(sizes, [8, 8, 8, 8]);
        assert!(balanced(&[], 2048).is_empty());
        assert_eq!(balanced(&[5000, 10], 2048), [0..1, 1..2]);
    }

    proptest! {
        #[test]
        fn batches_hold_every_text_once_and_keep_the_limit(
            lengths in proptest::collection::vec(1usize..600, 0..200),
            limit in 1usize..3000,
        ) {
            let batches = balanced(&lengths, limit);
            let covered: Vec<usize> = batches.iter().cloned().flatten().collect();
            prop_assert_eq!(covered, (0..lengths.len()).collect::<Vec<_>>());
            for batch in batches {
                let tokens: usize = lengths[batch.clone()].iter().sum();
                prop_assert!(!batch.is_empty() && (tokens <= limit || batch.len() == 1));
            }
        }
    }
}
