//! Decodes hexadecimal text.

/// The bytes of hexadecimal `text` in upper or lower case; `None` if it is not hexadecimal or has an odd length.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|&[high, low]| Some((value(high)? << 4) | value(low)?)).collect()
}

fn value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decode_inverts_hex() {
        let all: Vec<u8> = (0..=255).collect();
        let text = lkr_domain::hex(&all);
        assert!(text.starts_with("000102") && text.ends_with("feff") && text.len() == 512);
        assert_eq!(decode(&text).as_ref(), Some(&all));
        assert_eq!(decode(&text.to_uppercase()), Some(all));
        assert_eq!(decode(""), Some(vec![]));
    }

    #[test]
    fn decode_of_other_text_is_none() {
        for text in ["0", "000", "0g", " 00", "é", "+1"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
