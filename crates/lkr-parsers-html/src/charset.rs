//! Decodes a page.

use lkr_parsers::{Decoded, Source, charset_of, decode};

/// The encoding declaration of a page is searched in this many bytes. Browsers search 1,024, but some pages declare it
/// later.
const SEARCHED_BYTES: usize = 8 * 1024;

/// The text of a page, decoded with the encoding that its sender declared, or else with the one that it declares itself.
pub(crate) fn read<'a>(source: &Source<'a>) -> Decoded<'a> {
    let head = source.bytes.get(..SEARCHED_BYTES).unwrap_or(source.bytes);
    let from_sender = source.media_type.and_then(charset_of).map(str::to_owned);
    let declared_charset = from_sender.or_else(|| declared_charset(&String::from_utf8_lossy(head)));
    decode(source.bytes, declared_charset.as_deref())
}

/// The encoding in the first `meta` element that declares one. UTF-16 is ignored: the page could be searched as ASCII.
fn declared_charset(head: &str) -> Option<String> {
    let head = without_comments(head).to_ascii_lowercase();
    let from_tag = |tag: &str| {
        let tag = tag.split('>').next().unwrap_or_default();
        let value = tag.split("charset").nth(1)?.trim_start().strip_prefix('=')?.trim_start();
        let value = value.trim_start_matches(['"', '\'']);
        let end = value.find(['"', '\'', ';', '/', ' ', '\t', '\r', '\n']).unwrap_or(value.len());
        value.get(..end).filter(|value| !value.is_empty() && !value.starts_with("utf-16")).map(str::to_owned)
    };
    let from_xml = || {
        let declaration = head.trim_start().strip_prefix("<?xml")?.split("?>").next()?;
        declaration.split("encoding=").nth(1)?.split(['"', '\'']).nth(1).map(str::to_owned)
    };
    head.split("<meta").skip(1).find_map(from_tag).or_else(from_xml)
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("<!--");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once("-->").map_or("", |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_elements_and_xml_declarations_name_the_encoding() {
        for (head, expected) in [
            ("<meta charset=utf-8>", Some("utf-8")),
            ("<META CHARSET = 'Shift_JIS' />", Some("shift_jis")),
            ("<meta http-equiv=Content-Type content=\"text/html; charset=gb2312\">", Some("gb2312")),
            ("<!-- <meta charset=a> --><meta name=x><meta charset=b>", Some("b")),
            ("<?xml version=\"1.0\" encoding=\"koi8-r\"?><html>", Some("koi8-r")),
            ("<meta charset=utf-16><meta charset=''>", None),
            ("<meta name=charset>", None),
            ("charset=utf-8", None),
        ] {
            assert_eq!(declared_charset(head).as_deref(), expected, "{head}");
        }
    }

    #[test]
    fn media_type_of_sender_overrides_declared_encoding() {
        let page = b"<meta charset=windows-1252>\xcf\xf0\xe8\xe2\xe5\xf2";
        let source = Source { media_type: Some("text/html; charset=windows-1251"), ..Source::new(page) };
        assert!(read(&source).text.ends_with("Привет"));
        assert!(read(&Source::new(page)).text.ends_with("Ïðèâåò"));
    }
}
