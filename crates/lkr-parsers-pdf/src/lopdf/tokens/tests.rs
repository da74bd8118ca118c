use proptest::prelude::*;

use super::*;

/// The operators with their numbers of operands and their bytes.
fn read(content: &[u8]) -> Vec<(String, usize, String)> {
    let mut tokens = Tokens::new(content);
    let mut found = Vec::new();
    while let Some(operation) = tokens.next() {
        let bytes = String::from_utf8_lossy(&content[operation.range()]).into_owned();
        found.push((operation.operator.to_owned(), operation.operands.len(), bytes));
    }
    found
}

fn operators(content: &[u8]) -> Vec<String> {
    read(content).into_iter().map(|(operator, ..)| operator).collect()
}

fn operand(content: &str) -> Object {
    let content = format!("{content} Tj");
    Tokens::new(content.as_bytes()).next().unwrap().operands.first().unwrap().clone()
}

#[test]
fn operations_carry_their_byte_ranges() {
    let found = read(b" % note\nBT /F1 12 Tf\n[(A) -120 <42>]TJ(a)'1 2(b)\"3Tr ET");
    let bytes: Vec<&str> = found.iter().map(|(.., bytes)| bytes.as_str()).collect();
    assert_eq!(bytes, ["BT", "/F1 12 Tf", "[(A) -120 <42>]TJ", "(a)'", "1 2(b)\"", "3Tr", "ET"]);
    let operands: Vec<usize> = found.iter().map(|(_, operands, _)| *operands).collect();
    assert_eq!(operands, [0, 2, 1, 1, 3, 1, 0]);
}

#[test]
fn syntax_errors_do_not_end_the_scan() {
    for slip in [") ", "--1 w ", "] ", "> ", "{ ", ">> ", "\u{1}\u{2} ", "[ 1 ", "<< /A 1 ", "1.2.3 w "] {
        let content = format!("BT {slip}(seen) Tj ET");
        let found = operators(content.as_bytes());
        assert!(found.ends_with(&["Tj".into(), "ET".into()]), "{slip:?}: {found:?}");
    }
    assert_eq!(operators(b"q (never closed Tj ET"), ["q"]);
}

#[test]
fn operands_are_decoded() {
    let text = |bytes: &[u8]| Object::String(bytes.to_vec(), StringFormat::Literal);
    assert_eq!(operand("(a(b)\\)\\101\\5\\\n\\n\r\n)"), text(b"a(b))A\x05\n\n"));
    assert_eq!(operand("<41 4>"), Object::String(b"A@".to_vec(), StringFormat::Hexadecimal));
    assert_eq!(operand("/A#42C#"), Object::Name(b"ABC#".to_vec()));
    for (text, expected) in [("-.5", -0.5), ("--1", -1.0), ("3.00", 3.0), ("1.2.3", 1.2), ("0.5-4", 0.54)] {
        assert_eq!(operand(text), Object::Real(expected), "{text}");
    }
    assert!(matches!(operand("<< /A [1] /B << /C 1 >> >>"), Object::Dictionary(_)));
}

#[test]
fn inline_images_are_skipped() {
    let found = read(b"q BI /W 1 /F /AHx ID \xff EI(\x01 EI Q (a) Tj");
    assert_eq!(
        found.iter().map(|(operator, ..)| operator.as_str()).collect::<Vec<_>>(),
        ["q", "BI", "Q", "Tj"]
    );
    assert_eq!(operators(b"BI /W 1 ID never closed"), Vec::<String>::new());
}

proptest! {
    #[test]
    fn operations_of_arbitrary_content_are_in_order(
        content in proptest::collection::vec(prop_oneof![any::<u8>(), proptest::sample::select(&b"()<>[]{}/% BIEDTjR01.-\\\n"[..])], 0..200),
    ) {
        let mut tokens = Tokens::new(&content);
        let mut end = 0;
        while let Some(operation) = tokens.next() {
            prop_assert!(operation.start >= end && operation.end > operation.start);
            prop_assert!(operation.end <= content.len());
            end = operation.end;
        }
    }
}
