//! Texts cut to a number of tokens, of a tokenizer that is not known.

/// What a token is divided into here.
const PARTS: usize = 6;

/// At how many bytes to cut `text` so that it has no more than so many tokens; its length where it need not be cut.
pub(crate) fn cut(text: &str, tokens: usize) -> &str {
    let room = tokens.saturating_mul(PARTS);
    let mut used = 0_usize;
    let end = text.char_indices().find(|(_, c)| {
        used = used.saturating_add(parts(*c));
        used > room
    });
    end.and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// How many tokens `text` has, rather more than fewer.
pub(crate) fn tokens(text: &str) -> usize {
    text.chars().map(parts).sum::<usize>().div_ceil(PARTS)
}

/// What a character takes, in sixths of a token: about the most that the usual vocabularies of whole words and of bytes
/// need for running text. Three English letters are a token, two Cyrillic ones, one of Devanagari; a Chinese character
/// is one and a half, an emoji three.
const fn parts(c: char) -> usize {
    match c {
        'a'..='z' | 'A'..='Z' | ' ' => 2,
        '\0'..='\u{7ff}' => 3,
        '\u{800}'..='\u{2e7f}' => 6,
        '\u{2e80}'..='\u{ffff}' => 9,
        _ => 18,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_cut_by_what_they_take() {
        assert_eq!(cut("abcdefghi", 2), "abcdef");
        assert_eq!(cut("木星卫队轨道", 3), "木星");
        assert_eq!(cut("🦉🦉", 3), "🦉");
        assert_eq!(cut("short", 100), "short");
        assert_eq!((cut("x", 0), tokens(""), tokens("abcd"), tokens("木星")), ("", 0, 2, 3));
    }

    proptest! {
        #[test]
        fn what_is_left_is_the_beginning_and_no_longer(text: String, most in 0_usize..50) {
            let left = cut(&text, most);
            prop_assert!(text.starts_with(left) && tokens(left) <= most);
            let next = text.strip_prefix(left).and_then(|rest| rest.chars().next());
            let longer = |next| tokens(&[left, &String::from(next)].concat());
            prop_assert!(next.is_none_or(|next| longer(next) > most));
        }
    }
}
