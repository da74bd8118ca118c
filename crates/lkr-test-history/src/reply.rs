//! Where an answer of Redis ends.

/// The bytes of the first answer in `bytes` (RESP2 and RESP3); `None` if it is not complete.
pub(crate) fn length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")? + 2;
    let (kind, rest) = bytes.get(..end - 2)?.split_first()?;
    let count = || std::str::from_utf8(rest).ok()?.parse::<i64>().ok();
    match kind {
        b'$' | b'=' | b'!' => match usize::try_from(count()?) {
            Ok(text) => Some(end + text + 2).filter(|length| *length <= bytes.len()),
            // A missing text.
            Err(_) => Some(end),
        },
        b'*' | b'~' | b'>' => parts(bytes, end, count()?),
        b'%' => parts(bytes, end, count()? * 2),
        _ => Some(end),
    }
}

fn parts(bytes: &[u8], from: usize, count: i64) -> Option<usize> {
    (0..count).try_fold(from, |at, _| Some(at + length(bytes.get(at..)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_an_answer_is_found_once_it_is_complete() {
        for answer in [
            "+OK\r\n",
            ":12\r\n",
            "$-1\r\n",
            "$4\r\na\r\nb\r\n",
            "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
            "%1\r\n+a\r\n_\r\n",
        ] {
            let bytes = answer.as_bytes();
            assert_eq!(length(bytes), Some(bytes.len()), "{answer:?}");
            assert_eq!(length(&[bytes, b"+more\r\n"].concat()), Some(bytes.len()), "{answer:?}");
            for cut in 0..bytes.len() {
                assert_eq!(length(&bytes[..cut]), None, "{answer:?} cut at {cut}");
            }
        }
    }
}
