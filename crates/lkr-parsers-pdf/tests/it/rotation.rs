//! Pages that are displayed rotated.

use crate::common::{Pdf, check};

/// Text that is upright on a page that is displayed rotated by this angle, `right` and `down` from its upper left corner.
fn upright(angle: u32, right: u32, down: u32, text: &str) -> String {
    let matrix = match angle {
        90 => format!("0 1 -1 0 {down} {right}"),
        180 => format!("-1 0 0 -1 {} {down}", 600 - right),
        _ => format!("0 -1 1 0 {} {}", 600 - down, 800 - right),
    };
    format!("BT /R 10 Tf {matrix} Tm ({text}) Tj ET\n")
}

#[test]
fn upright_text_on_rotated_pages_is_read_in_order() {
    for angle in [90, 180, 270] {
        let page = upright(angle, 50, 60, "The first line is")
            + &upright(angle, 137, 60, "in two parts.")
            + &upright(angle, 50, 74, "Second line here,")
            + &upright(angle, 137, 74, "and its end.")
            + &upright(angle, 50, 88, "The third.");
        let pdf = Pdf::default().page(&page).entries("", &format!("/Rotate {angle}"), "");
        check(&pdf.bytes(), |name, parsed| {
            let words: Vec<&str> = parsed.text.split_whitespace().collect();
            let expected = "The first line is in two parts. Second line here, and its end. The third.";
            assert_eq!(words.join(" "), expected, "{name}, {angle}°");
        });
    }
}

#[test]
fn vertical_lines_keep_the_spaces_between_their_words() {
    let word = |y: u32, text: &str| format!("BT /R 10 Tf 0 1 -1 0 300 {y} Tm ({text}) Tj ET\n");
    let page = word(100, "Lorem") + &word(133, "ipsum") + &word(166, "dolor");
    check(&Pdf::default().page(&page).bytes(), |name, parsed| {
        let words: Vec<&str> = parsed.text.split_whitespace().collect();
        assert_eq!(words.join(" "), "Lorem ipsum dolor", "{name}");
    });
}
