//! Exponents, indices and denominators, which are marked where they would otherwise change the number or name before them.

use dom_query::{NodeData, NodeRef};

/// A longer superscript is no simple expression.
const MAX_CHARS: usize = 12;

/// More nodes are no simple expression.
const MAX_NODES: usize = 8;

/// Names of exponents. Other single letters after a base are abbreviations, such as the `o` of `nº`.
const VARIABLES: &str = "nmkijxytT";

/// More nodes of a fraction are not searched for an operator.
const MAX_FRACTION_NODES: usize = 64;

/// A superscript or a subscript, or a part of a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScriptKind {
    Super,
    Sub,
    Numerator,
    Denominator,
}

/// What is written before and after a script.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) before: &'static str,
    pub(super) after: &'static str,
}

/// The kind of an element: `sup`, `sub`, or the last part of such an element of a formula, or a part of a fraction.
pub(crate) fn script_kind(node: &NodeRef<'_>, name: &str) -> Option<ScriptKind> {
    match name {
        "sup" => return Some(ScriptKind::Super),
        "sub" => return Some(ScriptKind::Sub),
        name if name.starts_with('m') => {}
        _ => return None,
    }
    let parent = node.parent()?;
    let is_first = node.prev_element_sibling().is_none();
    if parent.has_name("mfrac") {
        return Some(if is_first { ScriptKind::Numerator } else { ScriptKind::Denominator });
    }
    if is_first || !matches!(name, "mn" | "mi" | "mrow") {
        return None;
    }
    match parent {
        parent if parent.has_name("msup") => Some(ScriptKind::Super),
        parent if parent.has_name("msub") => Some(ScriptKind::Sub),
        _ => None,
    }
}

/// The marks of a script after `base`, the text of its line so far.
///
/// 10⁶ becomes `10^6`, because `106` is another number. H₂O stays `H2O`: so it is written where there is no subscript, and
/// searched for. References to notes and ordinals (`1st`) stay as they are.
pub(super) fn marks(node: &NodeRef<'_>, kind: ScriptKind, base: &str) -> Marks {
    let text = || simple_text(node);
    match kind {
        ScriptKind::Super => text().map(|text| exponent(&text, base)).unwrap_or_default(),
        ScriptKind::Sub => text().map(|text| index(node, &text, base)).unwrap_or_default(),
        // A number before the fraction is another one: two and a half is not twenty-one halves.
        ScriptKind::Numerator => match (base.ends_with(char::is_alphanumeric), is_compound(node)) {
            (false, false) => Marks::default(),
            (true, false) => Marks { before: " ", after: "" },
            (false, true) => Marks { before: "(", after: ")" },
            (true, true) => Marks { before: " (", after: ")" },
        },
        ScriptKind::Denominator if is_compound(node) => Marks { before: "/(", after: ")" },
        ScriptKind::Denominator => Marks { before: "/", after: "" },
    }
}

/// Whether a part of a fraction has an operator after its beginning, or is a fraction itself.
fn is_compound(node: &NodeRef<'_>) -> bool {
    let mut parts = node.descendants_it().take(MAX_FRACTION_NODES);
    if node.has_name("mfrac") || parts.any(|part| part.has_name("mfrac")) {
        return true;
    }
    let mut text = String::new();
    node.descendants_it().take(MAX_FRACTION_NODES).for_each(|inner| push_text(&inner, &mut text));
    text.trim().chars().skip(1).any(is_operator)
}

fn exponent(text: &str, base: &str) -> Marks {
    let has_base = base.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ')' | ']'));
    let is_variable = text.chars().count() == 1 && text.contains(|c| VARIABLES.contains(c));
    let mut letters = base.chars().rev().take_while(|c| c.is_alphabetic());
    // Longer words may have a letter of an abbreviation.
    let is_symbol = letters.by_ref().take(2).count() < 2;
    let has_digit = text.contains(|c: char| c.is_ascii_digit());
    let is_ordinal = text.chars().any(char::is_alphabetic) && !has_digit && !has_operator(text);
    if !has_base || is_sign(text) || (is_ordinal && !(is_variable && is_symbol)) {
        return Marks::default();
    }
    let is_sum = text.chars().skip(1).any(is_operator) && !text.ends_with(is_operator);
    if is_sum { Marks { before: "^(", after: ")" } } else { Marks { before: "^", after: "" } }
}

/// An index after a digit, as in 101₂, is marked, and one before a digit, as in log₂8, separated from it.
fn index(node: &NodeRef<'_>, text: &str, base: &str) -> Marks {
    let is_digit = |c: char| c.is_ascii_digit();
    let before = if base.ends_with(is_digit) && text.starts_with(is_digit) { "_" } else { "" };
    let is_glued = text.ends_with(is_digit) && next_char(node).is_some_and(is_digit);
    Marks { before, after: if is_glued { " " } else { "" } }
}

/// The text of a script, if it is short, without a link and without spaces.
fn simple_text(node: &NodeRef<'_>) -> Option<String> {
    let mut text = String::new();
    let mut nodes = node.descendants_it();
    for inner in nodes.by_ref().take(MAX_NODES) {
        if inner.has_name("a") {
            return None;
        }
        push_text(&inner, &mut text);
    }
    let is_simple = |c: char| c.is_alphanumeric() || is_operator(c) || matches!(c, '(' | ')' | '.' | ',');
    let fits = !text.is_empty() && text.chars().all(is_simple) && text.chars().count() <= MAX_CHARS;
    (nodes.next().is_none() && fits).then_some(text)
}

/// Adds the text of a node, cut if it is long.
fn push_text(node: &NodeRef<'_>, text: &mut String) {
    node.query(|data| {
        if let NodeData::Text { contents } = &data.data {
            text.extend(contents.chars().take(MAX_CHARS + 1));
        }
    });
}

/// The first character after an element.
fn next_char(node: &NodeRef<'_>) -> Option<char> {
    let mut text = String::new();
    push_text(&node.next_sibling()?, &mut text);
    text.chars().next()
}

/// Whether a superscript is a charge, such as the `+` of Na⁺.
fn is_sign(text: &str) -> bool {
    text.chars().all(is_operator)
}

fn has_operator(text: &str) -> bool {
    text.contains(is_operator)
}

const fn is_operator(c: char) -> bool {
    matches!(c, '+' | '-' | '−' | '–' | '±' | '/' | '*' | '·' | '×' | '=')
}
