//! Selects the highest scores.

/// The most entries that there is room for at first.
const MAX_RESERVED: usize = 1_024;

/// The `limit` highest scores with their ids, including all ties with the last.
#[derive(Debug)]
pub(crate) struct TopK {
    limit: usize,
    /// Scores below this one are not among the highest.
    threshold: f32,
    kept: Vec<(f32, u32)>,
    /// The number of entries at which a cut pays off.
    cut_at: usize,
    /// The number of entries above which raising the threshold pays off.
    raise_above: usize,
}

impl TopK {
    pub(crate) fn new(limit: usize) -> Self {
        let cut_at = limit.saturating_mul(4).saturating_add(1_024);
        let kept = Vec::with_capacity(limit.saturating_mul(2).min(MAX_RESERVED));
        Self { limit, threshold: f32::NEG_INFINITY, kept, cut_at, raise_above: limit }
    }

    /// Whether a score may be among the highest.
    pub(crate) fn admits(&self, score: f32) -> bool {
        // NaN is a sign of damage. It counts as the highest score, so that the vector is verified.
        (score >= self.threshold || score.is_nan()) && self.limit > 0
    }

    /// A bound below which a number is not admitted after it was rounded to a score.
    pub(crate) fn lower_bound(&self) -> f64 {
        f64::from(self.threshold.next_down())
    }

    pub(crate) fn push(&mut self, score: f32, id: u32) {
        if self.admits(score) {
            self.kept.push((score, id));
            if self.kept.len() >= self.cut_at {
                self.cut();
                // If most scores tie, repeated cuts would remove nothing.
                self.cut_at = self.cut_at.max(self.kept.len().saturating_mul(2));
            }
        }
    }

    fn cut(&mut self) {
        if self.kept.len() > self.limit {
            let (_, (last, _), _) =
                self.kept.select_nth_unstable_by(self.limit - 1, |a, b| b.0.total_cmp(&a.0));
            self.threshold = *last;
            let last = *last;
            self.kept.retain(|(score, _)| score.total_cmp(&last).is_ge());
        }
    }

    /// Raises the threshold to what is known so far, if enough scores were pushed since it was raised.
    pub(crate) fn raise_threshold(&mut self) {
        if self.kept.len() > self.raise_above {
            self.cut();
            self.raise_above = self.kept.len().saturating_add(self.kept.len() / 4);
        }
    }

    /// The lowest of the highest scores; −∞ if there are fewer than the limit.
    pub(crate) fn into_threshold(self) -> f32 {
        let limit = self.limit;
        let top = self.into_top();
        let lowest = top.iter().map(|(score, _)| *score).fold(f32::INFINITY, f32::min);
        if top.len() >= limit && limit > 0 { lowest } else { f32::NEG_INFINITY }
    }

    /// The highest scores, in no order.
    pub(crate) fn into_top(mut self) -> Vec<(f32, u32)> {
        if self.limit > 0 {
            self.cut();
        }
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn top_k_keeps_the_highest_scores_and_ties(scores in proptest::collection::vec(0u8..40, 0..5_000), limit in 0usize..60) {
            let mut top = TopK::new(limit);
            scores.iter().zip(0..).for_each(|(score, id)| top.push(f32::from(*score), id));
            let mut best = top.into_top();
            best.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let mut all: Vec<_> = scores.iter().zip(0..).map(|(score, id)| (f32::from(*score), id)).collect();
            all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let last = limit.checked_sub(1).and_then(|last| all.get(last)).map(|(score, _)| *score);
            let mut top = TopK::new(limit);
            for (score, id) in &all {
                if top.admits(*score) {
                    top.push(*score, *id);
                }
            }
            prop_assert_eq!(top.into_threshold(), last.unwrap_or(f32::NEG_INFINITY));
            all.retain(|(score, _)| limit > 0 && last.is_none_or(|last| *score >= last));
            prop_assert_eq!(best, all);
        }
    }
}
