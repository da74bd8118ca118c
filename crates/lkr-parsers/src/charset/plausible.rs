//! Whether decoded text looks like text, or like text of another encoding.

/// Fewer characters above ASCII are not enough to tell single-byte encodings apart.
const MIN_CHARS: usize = 2;

/// Few words have more Latin letters above ASCII in a row, such as the Turkish ışığı.
const MAX_ACCENTED: usize = 3;

/// Whether text of a single-byte encoding is doubtful: it has almost no characters above ASCII, or a tenth of them are where
/// text rarely has them, such as a capital letter after a small one, or a sign within a word, or most of its Latin letters
/// are above ASCII.
pub(super) fn is_doubtful(text: &str) -> bool {
    let (mut all, mut odd, mut run) = (0_usize, 0_usize, 0_usize);
    let (mut plain, mut accented) = (0_usize, 0_usize);
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let after = characters.peek().copied().unwrap_or(' ');
        run = if is_accented(c) { run + 1 } else { 0 };
        plain += usize::from(c.is_ascii_alphabetic());
        accented += usize::from(is_accented(c));
        if !c.is_ascii() {
            // The punctuation of most encodings of Windows is the same.
            all += if is_punctuation(c) { MIN_CHARS } else { 1 };
            odd += usize::from(run > MAX_ACCENTED || is_odd(before, c, after));
        }
        before = c;
    }
    all < MIN_CHARS || odd.saturating_mul(10) > all || accented > plain
}

/// Whether a character is a Latin letter above ASCII.
fn is_accented(c: char) -> bool {
    !c.is_ascii() && c.is_alphabetic() && script(c) == 0
}

fn is_odd(before: char, c: char, after: char) -> bool {
    if c.is_alphabetic() {
        let is_raised = c.is_uppercase() && before.is_lowercase();
        return is_raised || is_other_script(before, c) || is_other_script(c, after);
    }
    let is_within = before.is_alphabetic() && after.is_alphabetic();
    let is_control = c.is_control() && c != '\u{85}';
    let is_drawn =
        ('\u{2500}'..='\u{259f}').contains(&c) && (before.is_alphabetic() || after.is_alphabetic());
    is_control || is_drawn || c == char::REPLACEMENT_CHARACTER || (is_within && !is_joiner(c))
}

/// Punctuation between letters.
const fn is_joiner(c: char) -> bool {
    matches!(c, '’' | '‘' | '—' | '–' | '…' | '\u{a0}' | '\u{ad}' | '\u{85}' | '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{64b}'..='\u{65f}' | '\u{e31}'..='\u{e4e}' | '\u{200c}'..='\u{200f}')
}

const fn is_punctuation(c: char) -> bool {
    matches!(c, '‘' | '’' | '“' | '”' | '–' | '—' | '…' | '•')
}

/// Whether two adjacent letters are of different scripts.
fn is_other_script(a: char, b: char) -> bool {
    a.is_alphabetic() && b.is_alphabetic() && script(a) != script(b)
}

/// A number for each script of single-byte encodings.
const fn script(c: char) -> u32 {
    match c {
        '\0'..='\u{36f}' | '\u{1e00}'..='\u{1eff}' => 0,
        '\u{370}'..='\u{3ff}' => 1,
        '\u{400}'..='\u{52f}' => 2,
        '\u{590}'..='\u{5ff}' => 3,
        '\u{600}'..='\u{6ff}' => 4,
        '\u{e00}'..='\u{e7f}' => 5,
        _ => 6,
    }
}
