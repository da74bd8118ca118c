use std::fmt;

/// A finite number in IEEE double precision. Numbers are ordered by value; -0 is 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(
    /// The bits of the double, changed so that they sort like the numbers.
    u64,
);

const SIGN: u64 = 1 << 63;

impl Number {
    /// The number; `None` if it is not finite.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        // Adding zero makes -0 and 0 the same.
        let bits = (value + 0.0).to_bits();
        value.is_finite().then_some(Self(if bits & SIGN == 0 { bits | SIGN } else { !bits }))
    }

    /// Reads a stored value. It is a number if it is `[+-]?digits[.digits][e[+-]digits]`, is finite, and has nothing
    /// around it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (mantissa, exponent) = unsigned.split_once('e').map_or((unsigned, None), |(m, e)| (m, Some(e)));
        let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(w, f)| (w, Some(f)));
        let exponent = exponent.map(|exponent| exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
        let is_number =
            are_digits(whole) && fraction.is_none_or(are_digits) && exponent.is_none_or(are_digits);
        if is_number { text.parse().ok().and_then(Self::new) } else { None }
    }

    /// The value.
    #[must_use]
    pub fn value(self) -> f64 {
        f64::from_bits(if self.0 & SIGN == 0 { !self.0 } else { self.0 & !SIGN })
    }

    /// Eight bytes that sort like the numbers.
    #[must_use]
    pub const fn to_ordered_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.value())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parse_accepts_exactly_the_grammar() {
        for (text, value) in [
            ("0", 0.0),
            ("-0", 0.0),
            ("+7", 7.0),
            ("007", 7.0),
            ("-12.50", -12.5),
            ("1e3", 1_000.0),
            ("1.5e+2", 150.0),
            ("25e-1", 2.5),
            ("1e-999", 0.0),
            ("9007199254740993", 9_007_199_254_740_992.0),
        ] {
            assert_eq!(Number::parse(text).map(Number::value), Some(value), "{text}");
        }
        for text in [
            "", "+", "-", ".5", "5.", "1.e3", "1e", "1e+", "e5", "1E3", "0x10", "1_000", "1,5", " 1", "1 ",
            "+-1", "inf", "NaN", "infinity", "1e999", "-1e999", "1.2.3", "1e2e3", "1e2.5", "１", "1\0",
        ] {
            assert_eq!(Number::parse(text), None, "{text}");
        }
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Number::new(value), None);
        }
    }

    proptest! {
        #[test]
        fn order_and_value_are_those_of_doubles(a: f64, b: f64) {
            prop_assume!(a.is_finite() && b.is_finite());
            let (x, y) = (Number::new(a).unwrap(), Number::new(b).unwrap());
            prop_assert_eq!(x.cmp(&y), a.partial_cmp(&b).unwrap());
            prop_assert_eq!(x.to_ordered_bytes().cmp(&y.to_ordered_bytes()), x.cmp(&y));
            prop_assert!(x.value() == a);
        }

        #[test]
        fn parse_never_panics_and_reads_printed_numbers(text in ".{0,12}", value: f64) {
            let _ = Number::parse(&text);
            prop_assume!(value.is_finite());
            prop_assert_eq!(Number::parse(&format!("{value}")), Number::new(value));
        }
    }
}
