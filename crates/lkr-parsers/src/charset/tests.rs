use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(bytes: &[u8], declared: Option<&str>, text: &str, encoding: &str, lossy: bool) {
    let decoded = decode(bytes, declared);
    assert_eq!((&*decoded.text, decoded.encoding, decoded.lossy), (text, encoding, lossy));
}

fn utf16(text: &str, order: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(order).collect()
}

fn utf32(text: &str, order: fn(u32) -> [u8; 4]) -> Vec<u8> {
    text.chars().flat_map(|c| order(c.into())).collect()
}

const WORDS: &str = "Grüße, ein paar Wörter\n世界 und mehr\n";

#[test]
fn byte_order_mark_sets_encoding_and_is_removed() {
    check(b"\xef\xbb\xbfa\xc3\xa9", Some("windows-1252"), "aé", "UTF-8", false);
    check(b"\xef\xbb\xbf", None, "", "UTF-8", false);
    let marked = format!("\u{feff}{WORDS}");
    check(&utf16(&marked, u16::to_le_bytes), Some("utf-8"), WORDS, "UTF-16LE", false);
    check(&utf16(&marked, u16::to_be_bytes), None, WORDS, "UTF-16BE", false);
    check(&utf32(&marked, u32::to_le_bytes), None, WORDS, "UTF-32LE", false);
    check(&utf32(&marked, u32::to_be_bytes), None, WORDS, "UTF-32BE", false);
    check(b"\xff\xfe\0\0a\0\0\0\0\0\x11\0b", None, "a\u{fffd}", "UTF-32LE", true);
    check(b"\xff\xfea\0\x00\xd8", None, "a\u{fffd}", "UTF-16LE", true);
}

#[test]
fn wide_text_without_mark_is_detected_by_zero_bytes() {
    check(&utf16(WORDS, u16::to_le_bytes), None, WORDS, "UTF-16LE", false);
    check(&utf16(WORDS, u16::to_be_bytes), None, WORDS, "UTF-16BE", false);
    check(&utf16("plain", u16::to_le_bytes), None, "plain", "UTF-16LE", false);
    // The bytes of the first are valid UTF-8, and the letter 가 of the second has a zero byte too.
    for text in ["Москва, столица России", "서울은 가장 큰 도시이다. 가까운 가게가 많다."]
    {
        check(&utf16(text, u16::to_le_bytes), None, text, "UTF-16LE", false);
        check(&utf16(text, u16::to_be_bytes), None, text, "UTF-16BE", false);
    }
    check(b"a\0b\0c d\0e", None, "a\0b\0c d\0e", "UTF-8", false);
    check(&utf32(WORDS, u32::to_le_bytes), None, WORDS, "UTF-32LE", false);
    check(&utf32(WORDS, u32::to_be_bytes), None, WORDS, "UTF-32BE", false);
}

#[test]
fn declared_encoding_is_used_if_bytes_are_valid_in_it() {
    check(b"\xcf\xf0\xe8\xe2\xe5\xf2", Some("windows-1251"), "Привет", "windows-1251", false);
    check(b"\x93\xfa\x96\x7b", Some("Shift_JIS"), "日本", "Shift_JIS", false);
    check("Grüße".as_bytes(), Some("latin1"), "Grüße", "UTF-8", false);
    check("日本".as_bytes(), Some("no such"), "日本", "UTF-8", false);
    check(b"plain1", Some("utf-16"), "plain1", "UTF-8", false);
}

#[test]
fn undeclared_encoding_is_detected_by_statistics() {
    for (label, text) in [
        ("gb18030", "这是一个用来测试的简体中文文本,里面有一些常用的汉字。"),
        ("Big5", "這是一個用來測試的繁體中文文本,裡面有一些常用的漢字。"),
        ("Shift_JIS", "これは日本語のテキストです。ひらがなとカタカナがあります。"),
        ("EUC-JP", "これは日本語のテキストです。ひらがなとカタカナがあります。"),
        ("EUC-KR", "이것은 한국어로 쓴 시험용 문장입니다. 몇 단어가 더 있습니다."),
        ("windows-1251", "Это простой русский текст, в котором есть несколько слов."),
        ("KOI8-U", "Это простой русский текст, в котором есть несколько слов."),
        ("windows-1252", "Voilà un été très agréable, où l’on mangea des pâtes."),
        ("windows-1253", "Αυτό είναι ένα απλό ελληνικό κείμενο με μερικές λέξεις."),
    ] {
        let encoding = Encoding::for_label(label.as_bytes()).unwrap();
        let (bytes, _, _) = encoding.encode(text);
        assert_eq!(decode(&bytes, None).text, text, "{label}");
    }
}

/// East Asian texts with their legacy encodings.
const EAST_ASIAN_TEXTS: [(&str, &[&str]); 3] = [
    ("これは日本語のテキストです。ひらがなとカタカナがあります。", &["Shift_JIS", "EUC-JP", "gb18030"]),
    ("这是一个用来测试的简体中文文本,里面有一些常用的汉字。\r\n第二行。", &["gb18030"]),
    ("這是一個用來測試的繁體中文文本,裡面有一些常用的漢字。", &["Big5", "gb18030"]),
];

#[test]
fn east_asian_utf16_is_detected_without_zero_bytes() {
    for (text, others) in EAST_ASIAN_TEXTS {
        let text = text.replace(',', "，");
        for text in [text.clone(), text.replace(['\r', '\n'], "")] {
            check(&utf16(&text, u16::to_le_bytes), None, &text, "UTF-16LE", false);
            check(&utf16(&text, u16::to_be_bytes), None, &text, "UTF-16BE", false);
        }
        for label in others {
            let (bytes, _, _) = Encoding::for_label(label.as_bytes()).unwrap().encode(&text);
            for start in 0..4 {
                let decoded = decode(&bytes[start..], None);
                assert!(!decoded.encoding.starts_with("UTF-16"), "{label} {text}");
            }
        }
    }
}

#[test]
fn iso_2022_jp_is_decoded() {
    let bytes = b"mail: \x1b$B$3$s$K$A$O\x1b(B!\n";
    check(bytes, None, "mail: こんにちは!\n", "ISO-2022-JP", false);
    check(b"\x1b$@F|K\\\x1b(J", None, "日本", "ISO-2022-JP", false);
    // Neither terminal colours nor invalid sequences are ISO-2022-JP.
    check(b"\x1b[1mbold\x1b[0m", None, "\x1b[1mbold\x1b[0m", "UTF-8", false);
    check(b"\x1b$Bx", None, "\x1b$Bx", "UTF-8", false);
}

#[test]
fn iso_2022_kr_is_decoded() {
    check(b"\x1b$)C\x0eGQ1[\x0f 1\n", None, "한글 1\n", "ISO-2022-KR", false);
    check(b"\x1b$)C\r\na \x0eGQ\n1[", None, "a 한\n1[", "ISO-2022-KR", false);
    check(b"\x1b$)C\x0eGQ1\x0f!", None, "한\u{fffd}!", "ISO-2022-KR", true);
    // Without the header or a shift, it is not ISO-2022-KR.
    check(b"\x0eGQ\x0f", None, "\u{e}GQ\u{f}", "UTF-8", false);
    check(b"\x1b$)C plain", None, "\x1b$)C plain", "UTF-8", false);
}

#[test]
fn rare_declared_encodings_are_used() {
    check(b"\xd0\x65\x8b\x69", Some("Johab"), "한글", "Johab", false);
    assert_ne!(decode(b"\xd0\x65\x8a", Some("johab")).encoding, "Johab", "half a character");
    check(b"\xdd\xe1\xb7\xeb\xa8\xe5", Some("cp855"), "Привет", "IBM855", false);
    check("Привет".as_bytes(), Some("IBM855"), "Привет", "UTF-8", false);
}

#[test]
fn johab_has_single_letters_signs_and_chinese_characters() {
    let bytes = b"\x88\x41\x84\x61\x84\x42 \xd9\x31\xe0\x31\xf9\xfe \x84\x41";
    check(bytes, Some("johab"), "ㄱㅏㄱ \u{3000}伽詰 \u{3000}", "Johab", false);
    for invalid in
        [&b"\xda\xa1"[..], b"\xdf\x31", b"\xd8\x31", b"\xfa\x31", b"\xd0\x20", b"\x80\x41", b"\x8c\x42"]
    {
        assert_ne!(decode(invalid, Some("johab")).encoding, "Johab", "{invalid:?}");
    }
}

#[test]
fn encoding_guessed_from_little_is_unsure() {
    let warned = |bytes: &[u8]| decode(bytes, None).warnings().collect::<Vec<_>>();
    assert_eq!(
        warned(b"caf\xe9"),
        [
            "the encoding windows-1252 was guessed and may be wrong; if the text is wrong, save the file as UTF-8"
        ]
    );
    // The same words in an encoding of DOS, which is not guessed.
    assert_eq!(warned(b"d\x82j\x85 vu, un \x82t\x82 \x85 la p\x88che").len(), 1);
    assert_eq!(warned(b"d\xe9j\xe0 vu, un \xe9t\xe9 \xe0 la p\xeache"), [""; 0]);
    assert_eq!(decode(b"caf\xe9", Some("latin1")).warnings().count(), 0);
}

#[test]
fn ebcdic_is_decoded() {
    let bytes =
        b"\xc8\x81\x99\x84\xa6\x81\x99\x85\x40\x81\x95\x84\x40\xf2\xf0\x40\xa2\x96\x99\xa3\xa2\x0d\x25";
    check(bytes, None, "Hardware and 20 sorts\r\n", "IBM500", false);
}

#[test]
fn utf8_with_few_errors_is_decoded_as_utf8() {
    check(&"世界".as_bytes()[..5], None, "世\u{fffd}", "UTF-8", true);
    let mut long = "Grüße ".repeat(40).into_bytes();
    long.push(0xff);
    assert!(decode(&long, None).text.ends_with("Grüße \u{fffd}"));
}

#[test]
fn control_characters_are_removed_except_from_utf8() {
    check(b"caf\xe9 \x01\x1bau lait\t\x0c\r\n", None, "café au lait\t\u{c}\r\n", "windows-1252", true);
    check(b"a\0b\x01c", None, "a\0b\u{1}c", "UTF-8", false);
}

#[test]
fn charset_of_media_type_is_parsed() {
    for (media_type, charset) in [
        ("text/html; charset=utf-8", Some("utf-8")),
        ("text/html;x=y; Charset = \"Shift_JIS\"", Some("Shift_JIS")),
        ("text/html; charset=", None),
        ("text/html", None),
        ("charset=utf-8", None),
    ] {
        assert_eq!(charset_of(media_type), charset, "{media_type}");
    }
}

proptest! {
    #[test]
    fn utf8_is_unchanged(text in "[^\u{0}\u{feff}]{0,60}", declared in prop::option::of("latin1|utf-8|utf-9")) {
        let decoded = decode(text.as_bytes(), declared.as_deref());
        prop_assert_eq!(&*decoded.text, &text);
        prop_assert!(!decoded.lossy);
    }

    #[test]
    fn single_byte_text_is_not_detected_as_utf16(text in "[a-zA-Zéèüößñ ,.\n]{0,80}", label in "windows-1252|windows-1250|KOI8-U|macintosh") {
        let (bytes, _, _) = Encoding::for_label(label.as_bytes()).unwrap().encode(&text);
        prop_assert!(!decode(&bytes, None).encoding.starts_with("UTF-16"));
    }

    #[test]
    fn arbitrary_bytes_are_decoded_in_bounded_size(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(decode(&bytes, None).text.len() <= 3 * bytes.len());
        prop_assert!(decode(&bytes, Some("gbk")).text.len() <= 3 * bytes.len());
    }
}
