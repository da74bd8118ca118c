//! The characters of symbol fonts, which Word writes in the private use area.

/// The name of the font of Greek letters and signs.
pub(crate) const SYMBOL: &str = "Symbol";

/// The characters of Symbol from 0x20 on, sixteen in each row. A blank has no text.
const ROWS: [&str; 14] = [
    " !∀#∃%&∋()∗+,−./",
    "0123456789:;<=>?",
    "≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟ",
    "ΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_",
    " αβχδεφγηιϕκλμνο",
    "πθρστυϖωξψζ{|}∼ ",
    "                ",
    "                ",
    "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓",
    "°±″≥×∝∂•÷≠≡≈…|—↵",
    "ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉",
    "∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓",
    "◊⟨®©™∑          ",
    " ⟩∫⌠ ⌡          ",
];

/// Characters of Wingdings: boxes, check marks and the arrows that Word puts in the place of `-->`.
const WINGDINGS: [(u32, char); 12] = [
    (0x6f, '☐'),
    (0x71, '❑'),
    (0x9f, '•'),
    (0xa7, '▪'),
    (0xa8, '◻'),
    (0xdf, '←'),
    (0xe0, '→'),
    (0xe8, '➔'),
    (0xf3, '⇔'),
    (0xfb, '✗'),
    (0xfc, '✓'),
    (0xfe, '☑'),
];

/// The character that a font shows for `c`; `c` itself if the font is not known.
pub(crate) fn character(font: &str, c: char) -> char {
    let code = match u32::from(c) {
        code @ 0xf020..=0xf0ff => code - 0xf000,
        // Other characters than those of ASCII are what they are: the font has no code for them.
        code @ 0x20..=0x7e => code,
        _ => return c,
    };
    let shown = match font {
        SYMBOL => symbol(code),
        "Wingdings" => WINGDINGS.iter().find_map(|(other, shown)| (*other == code).then_some(*shown)),
        _ => None,
    };
    shown.unwrap_or(c)
}

fn symbol(code: u32) -> Option<char> {
    let at = usize::try_from(code).ok()?.checked_sub(0x20)?;
    let shown = ROWS.get(at / 16)?.chars().nth(at % 16)?;
    (shown != ' ' || code == 0x20).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_symbol_fonts_are_known() {
        assert!(ROWS.iter().all(|row| row.chars().count() == 16));
        for (font, code, shown) in [
            ("Symbol", '\u{f061}', 'α'),
            ("Symbol", 'm', 'μ'),
            ("Symbol", '\u{f0b3}', '≥'),
            ("Symbol", '\u{f0e5}', '∑'),
            ("Symbol", '\u{f020}', ' '),
            ("Symbol", '\u{f080}', '\u{f080}'),
            ("Wingdings", '\u{f0e0}', '→'),
            ("Wingdings", '\u{f04a}', '\u{f04a}'),
            ("Arial", '\u{f061}', '\u{f061}'),
            ("Arial", '✓', '✓'),
            ("Symbol", '\u{a0}', '\u{a0}'),
            ("Symbol", '×', '×'),
        ] {
            assert_eq!(character(font, code), shown, "{font} {code:?}");
        }
    }
}
