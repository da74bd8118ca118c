//! Decides from its words whether a line can be a heading.

/// Marks after the names of authors.
const MARKS: [char; 9] = ['∗', '*', '†', '‡', '§', '¶', '#', '+', '$'];

/// The first words of captions.
const CAPTIONS: [&str; 11] = [
    "figure",
    "fig",
    "table",
    "algorithm",
    "listing",
    "abbildung",
    "abb",
    "tabelle",
    "tableau",
    "figura",
    "tabla",
];

/// The depth of the number of a title: 1 for `2` and `IV.`, 2 for `2.1`, 0 without a number.
pub(super) fn depth(title: &str) -> usize {
    let Some((number, rest)) = title.split_once([' ', '\t']) else { return 0 };
    if !rest.contains(char::is_alphabetic) {
        return 0;
    }
    let starts_block: Vec<&str> = number.trim_end_matches(['.', ')', ':']).split('.').collect();
    let is_figure = |part: &&str| matches!(part.len(), 1..=3) && part.chars().all(|c| c.is_ascii_digit());
    let is_roman =
        number.ends_with('.') && starts_block.iter().all(|part| part.chars().all(|c| "IVXL".contains(c)));
    let letter_first = starts_block.len() > 1 && starts_block.first().is_some_and(|part| is_letter(part));
    let figures = starts_block.iter().skip(usize::from(letter_first)).all(is_figure);
    if figures || is_roman && starts_block.len() == 1 && !number.starts_with('.') {
        starts_block.len()
    } else {
        0
    }
}

fn is_letter(part: &str) -> bool {
    part.len() == 1 && part.chars().all(|c| c.is_ascii_uppercase())
}

/// Words after which a sentence goes on.
const OPEN_WORDS: [&str; 27] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "from", "if", "is", "of", "or", "our",
    "that", "the", "their", "then", "to", "was", "we", "were", "when", "which", "with",
];

/// The labels of statements, which are followed by text.
const STATEMENTS: [&str; 10] = [
    "theorem",
    "lemma",
    "corollary",
    "proposition",
    "definition",
    "proof",
    "remark",
    "example",
    "claim",
    "conjecture",
];

/// Whether the title ends like a sentence or a part of one.
pub(super) fn ends_as_text(title: &str) -> bool {
    let is_open = || title.rsplit(' ').next().is_some_and(|last| OPEN_WORDS.contains(&last));
    title.ends_with([',', ';', '-', '=', '<', '+', '/', '(', '[', '{', '|'])
        || depth(title) == 0 && title.ends_with(['.', '。'])
        || is_open()
}

/// Whether a label with a number comes first, such as `Item 1A.` or `4.2.`
pub(super) fn is_labelled(title: &str) -> bool {
    let is_label =
        |word: &str| word.ends_with(['.', ':', ')']) && word.contains(|c: char| c.is_ascii_digit());
    title.split([' ', '\t']).take(2).any(is_label)
}

/// Whether it ends with a short capitalised word and a full stop, such as `Inc.`
pub(super) fn ends_with_abbreviation(text: &str) -> bool {
    let last = text.rsplit(' ').next().and_then(|last| last.strip_suffix('.'));
    last.is_some_and(|word| {
        word.starts_with(char::is_uppercase)
            && word.chars().count() <= 5
            && word.chars().all(char::is_alphabetic)
    })
}

/// Whether it has two different letters: an ornament such as `oOo` has not.
pub(super) fn has_two_letters(title: &str) -> bool {
    let mut letters = title.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase);
    let first = letters.next();
    letters.any(|letter| Some(letter) != first)
}

/// Whether it has a word: parts of formulas have not.
pub(super) fn has_long_word(title: &str) -> bool {
    let is_long = |word: &str| word.chars().count() >= 4 || word.chars().any(|c| u32::from(c) > 0x2e80);
    title.split(|c: char| !c.is_alphabetic()).any(is_long)
}

/// Whether it is the label of a statement with its number, such as `Theorem 3`.
pub(super) fn is_statement(title: &str) -> bool {
    let Some((word, rest)) = title.split_once([' ', '\u{a0}']) else { return false };
    STATEMENTS.contains(&word.to_lowercase().as_str())
        && rest.starts_with(|c: char| c.is_ascii_digit() || c == '(')
}

/// Whether it is an entry of a table of contents, with dots before the page number.
pub(super) fn is_entry(title: &str) -> bool {
    title.contains("....") || title.contains(". . .") || title.contains("……")
}

/// Whether it is a caption: a word such as "figure", and a number.
pub(super) fn is_caption(title: &str) -> bool {
    let Some((word, rest)) = title.split_once([' ', '\u{a0}']) else { return false };
    let word = word.trim_end_matches('.').to_lowercase();
    CAPTIONS.contains(&word.as_str()) && rest.starts_with(|c: char| c.is_ascii_digit() || "IVX".contains(c))
}

/// Whether it has names, institutions or addresses of authors.
pub(super) fn is_byline(title: &str) -> bool {
    let addresses = ["@", "http://", "https://", "www."];
    if addresses.iter().any(|address| title.contains(address)) {
        return true;
    }
    let commas = title.matches([',', ';']).count();
    let marks = marks(title);
    commas > 2 || marks > 1 || marks > 0 && commas > 0
}

/// How many words end with a mark or a superscript digit.
fn marks(title: &str) -> usize {
    let is_marked = |word: &&str| {
        let name = word.trim_end_matches(|c: char| MARKS.contains(&c) || c.is_ascii_digit());
        let marked = word.ends_with(MARKS) || name.chars().count() + 1 == word.chars().count();
        marked && name.len() > 1 && name.chars().all(|c| c.is_alphabetic() || "'-.’".contains(c))
    };
    title.split([' ', ',']).filter(is_marked).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_number_gives_its_level() {
        for (title, expected) in [
            ("2 Methods", 1),
            ("2. Methods", 1),
            ("2.1 Materials", 2),
            ("2.1.3. Wood", 3),
            ("IV. Results", 1),
            ("A.1 Proofs", 2),
            ("1", 0),
            ("Methods", 0),
            ("I am here", 0),
            ("2019 was wet", 0),
            ("... and so on", 0),
        ] {
            assert_eq!(depth(title), expected, "{title}");
        }
    }

    #[test]
    fn bylines_and_captions_are_not_headings() {
        for title in [
            "Ann Lee∗, Bob Ray",
            "Ann Lee, Bob Ray, Cy Day, Di Fox",
            "ann@example.org",
            "Hill College† and Dale College‡",
            "Ann Lee1 and Bob Ray2",
        ] {
            assert!(is_byline(title), "{title}");
        }
        for title in ["Types, Traces and Trees", "On C++ and its uses∗", "Results"] {
            assert!(!is_byline(title), "{title}");
        }
        assert!(is_caption("Fig. 2: A tree") && is_caption("Table IV") && !is_caption("Table manners"));
        assert!(is_entry("1 Trees . . . . 4") && !is_entry("1. Trees"));
        assert!(ends_as_text("It rained.") && !ends_as_text("2. It rained."));
    }
}
