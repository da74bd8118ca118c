use super::{Instant, Number};

/// What a value is compared with. The operand decides how.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operand {
    /// By value. A stored value that is no number fails the comparison.
    Number(Number),
    /// By instant. A stored value that is no date or time fails the comparison.
    Instant(Instant),
    /// By code points, without folding or normalisation.
    Text(String),
}

/// A test of a stored value. A missing or empty value passes `Exists(false)` and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ValueTest {
    /// The value equals one of these, which are sorted.
    In(Vec<Operand>),
    /// The value is within bounds.
    Range(Range),
    /// The value starts with this text.
    Prefix(String),
    /// Whether there is a value.
    Exists(bool),
}

/// The bounds of a range.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Range {
    /// At least, or above, the end.
    From(RangeEnd),
    /// At most, or below, the end.
    To(RangeEnd),
    /// Between two ends, which are of one type.
    Between(RangeEnd, RangeEnd),
}

/// The end of a range.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RangeEnd {
    /// The value of the end.
    pub operand: Operand,
    /// Whether the value belongs to the range.
    pub is_included: bool,
}

impl ValueTest {
    /// Whether the value equals one of the operands.
    #[must_use]
    pub fn any_of(operands: impl IntoIterator<Item = Operand>) -> Self {
        let mut operands: Vec<Operand> = operands.into_iter().collect();
        operands.sort_unstable();
        operands.dedup();
        Self::In(operands)
    }

    /// Whether a stored value passes.
    #[must_use]
    pub fn passes(&self, value: Option<&str>) -> bool {
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            return *self == Self::Exists(false);
        };
        match self {
            Self::In(operands) => is_any_of(value, operands),
            Self::Range(range) => range.contains(value),
            Self::Prefix(prefix) => value.starts_with(prefix.as_str()),
            Self::Exists(exists) => *exists,
        }
    }

    /// Whether an instant passes, whose text is not compared.
    pub(super) fn passes_instant(&self, at: Instant) -> bool {
        match self {
            Self::In(operands) => operands.binary_search(&Operand::Instant(at)).is_ok(),
            Self::Range(range) => range.holds(&Operand::Instant(at)),
            Self::Prefix(_) => false,
            Self::Exists(exists) => *exists,
        }
    }
}

fn is_any_of(value: &str, operands: &[Operand]) -> bool {
    let has = |operand: &Operand| operands.binary_search(operand).is_ok();
    let compare = |operand: &Operand| match operand {
        Operand::Text(text) => text.as_str().cmp(value),
        // Texts are sorted behind all others.
        Operand::Number(_) | Operand::Instant(_) => std::cmp::Ordering::Less,
    };
    let has_typed = || !matches!(operands.first(), None | Some(Operand::Text(_)));
    operands.binary_search_by(compare).is_ok()
        || (has_typed()
            && (Number::parse(value).is_some_and(|number| has(&Operand::Number(number)))
                || Instant::parse(value).is_some_and(|at| has(&Operand::Instant(at)))))
}

impl Range {
    /// The lower and the upper end.
    #[must_use]
    pub const fn ends(&self) -> (Option<&RangeEnd>, Option<&RangeEnd>) {
        match self {
            Self::From(lower) => (Some(lower), None),
            Self::To(upper) => (None, Some(upper)),
            Self::Between(lower, upper) => (Some(lower), Some(upper)),
        }
    }

    fn contains(&self, value: &str) -> bool {
        let operand = match self {
            Self::From(end) | Self::To(end) | Self::Between(end, _) => &end.operand,
        };
        let value = match operand {
            Operand::Number(_) => Number::parse(value).map(Operand::Number),
            Operand::Instant(_) => Instant::parse(value).map(Operand::Instant),
            Operand::Text(_) => Some(Operand::Text(value.to_owned())),
        };
        value.is_some_and(|value| self.holds(&value))
    }

    /// Whether a value of the type of the ends is within them.
    fn holds(&self, value: &Operand) -> bool {
        let (lower, upper) = self.ends();
        let is_of_type =
            |end: &RangeEnd| std::mem::discriminant(&end.operand) == std::mem::discriminant(value);
        lower.into_iter().chain(upper).all(is_of_type)
            && lower.is_none_or(|end| *value > end.operand || (end.is_included && *value == end.operand))
            && upper.is_none_or(|end| *value < end.operand || (end.is_included && *value == end.operand))
    }
}
