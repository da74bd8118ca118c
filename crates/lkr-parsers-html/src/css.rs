//! The declarations of style sheets and `style` attributes, as far as they tell whether words can be seen.

mod colour;
mod value;

use std::{collections::BTreeMap, str::Chars};

pub(crate) use colour::Paint;
pub(crate) use value::{Property, Value};

/// How much a declaration weighs: whether it is important, what it is of, and its place among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_important: bool,
    origin: Origin,
    order: usize,
}

/// Where a declaration comes from; the later ones win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Tag,
    Class,
    Id,
    /// A rule that may hold for the element, such as one for when the pointer is over it.
    Perhaps,
    /// The element's own attribute.
    Own,
}

/// What is declared of an element.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts(BTreeMap<Property, (Rank, Value)>);

impl Facts {
    /// Reads declarations that were cleaned.
    pub(crate) fn read(declarations: &str, origin: Origin, order: usize) -> Self {
        let mut facts = Self::default();
        for declaration in declarations.split(';').filter(|part| !part.contains('{')) {
            let Some((property, value)) = declaration.split_once(':') else {
                continue;
            };
            let (value, is_important) = match value.split_once('!') {
                Some((value, mark)) if mark.trim().eq_ignore_ascii_case("important") => (value, true),
                Some(_) => continue,
                None => (value, false),
            };
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_lowercase();
            let rank = Rank { is_important, origin, order };
            for (property, value) in value::read(&property.trim().to_ascii_lowercase(), &value) {
                facts.add(property, rank, value);
            }
        }
        facts
    }

    /// A single fact that an attribute other than `style` tells, which all others outweigh.
    pub(crate) fn hint(&mut self, property: Property, value: Value) {
        self.add(property, Rank { is_important: false, origin: Origin::Tag, order: 0 }, value);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (property, (rank, value)) in &other.0 {
            self.add(*property, *rank, *value);
        }
    }

    pub(crate) fn retain(&mut self, is_kept: impl Fn(Property, Value) -> bool) {
        self.0.retain(|property, (_, value)| is_kept(*property, *value));
    }

    /// Leaves open what the colours are, where it is not known whether they hold.
    pub(crate) fn blur(&mut self) {
        for (_, value) in self.0.values_mut() {
            if let Value::Paint(paint) = value {
                *paint = Paint::Other;
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, property: Property) -> Option<Value> {
        self.0.get(&property).map(|(_, value)| *value)
    }

    /// Whether a property has a value that hides, or helps to.
    pub(crate) fn is(&self, property: Property) -> bool {
        self.get(property) == Some(Value::Flag(true))
    }

    /// Whether any of the properties hides by itself.
    pub(crate) fn any_hides(&self) -> bool {
        self.0.iter().any(|(property, (_, value))| property.is_hiding() && *value == Value::Flag(true))
    }

    pub(crate) fn paint(&self, property: Property) -> Option<Paint> {
        match self.get(property)? {
            Value::Paint(paint) => Some(paint),
            _ => None,
        }
    }

    fn add(&mut self, property: Property, rank: Rank, value: Value) {
        let entry = self.0.entry(property).or_insert((rank, value));
        if rank >= entry.0 {
            *entry = (rank, value);
        }
    }
}

/// A style sheet with a blank for each comment, without what strings and addresses hold, and with its escapes resolved.
pub(crate) fn clean(css: &str) -> String {
    let mut kept = String::with_capacity(css.len());
    let mut chars = css.chars();
    while let Some(c) = chars.next() {
        match c {
            '/' if chars.as_str().starts_with('*') => {
                let comment = chars.as_str().get(1..).unwrap_or_default();
                chars = comment.split_once("*/").map_or("", |(_, rest)| rest).chars();
                kept.push(' ');
            }
            '\\' => kept.extend(escaped(&mut chars)),
            '"' | '\'' => {
                skip_string(&mut chars, c);
                kept.push_str("\"\"");
            }
            '(' if ends_with_url(&kept) => {
                kept.push('(');
                if !chars.as_str().trim_ascii_start().starts_with(['"', '\'']) {
                    let end = chars.as_str().find(')').unwrap_or(chars.as_str().len());
                    chars = chars.as_str().get(end..).unwrap_or_default().chars();
                }
            }
            c => kept.push(c),
        }
    }
    kept
}

fn ends_with_url(text: &str) -> bool {
    text.len().checked_sub(3).and_then(|at| text.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case("url"))
}

/// The character that an escape stands for, where names are made of it; else a letter that no name has.
fn escaped(chars: &mut Chars<'_>) -> Option<char> {
    let rest = chars.as_str();
    let digits = rest.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
    let found = if digits == 0 {
        chars.next()?
    } else {
        let code = u32::from_str_radix(rest.get(..digits)?, 16).ok()?;
        let after = rest.get(digits..)?;
        *chars = after.strip_prefix([' ', '\t', '\n']).unwrap_or(after).chars();
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    let is_of_names = found.is_alphanumeric() || matches!(found, '-' | '_');
    Some(if is_of_names { found } else { char::REPLACEMENT_CHARACTER })
}

/// A string ends with its quote, or with the line.
fn skip_string(chars: &mut Chars<'_>, quote: char) {
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            c if c == quote || c == '\n' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sheets_are_cleaned() {
        for (css, expected) in [
            ("d\\69splay:none", "display:none"),
            ("d\\000069 splay:none", "display:none"),
            ("display:/**/none/* open", "display: none "),
            ("a{content:'}\\'}'}b", "a{content:\"\"}b"),
            ("a:url(data:a;b{c);d:url( 'x;' )", "a:url();d:url( \"\" )"),
            ("\\3b x\\", "\u{fffd}x"),
            ("'open\nb", "\"\"b"),
        ] {
            assert_eq!(clean(css), expected, "{css}");
        }
    }

    #[test]
    fn the_weightiest_declaration_counts() {
        let own = |css: &str| Facts::read(css, Origin::Own, 0);
        assert!(own("display:none;display:bogus").is(Property::Display));
        assert!(own("display:none!important;display:block").is(Property::Display));
        assert!(!own("display:none;display:block").is(Property::Display));
        assert!(!own("display:none !bogus").is(Property::Display));
        let mut facts = own("display:block");
        facts.merge(&Facts::read("display:none", Origin::Id, 1));
        assert!(!facts.is(Property::Display));
        facts.merge(&Facts::read("display:none!important", Origin::Tag, 1));
        assert!(facts.is(Property::Display));
    }
}
