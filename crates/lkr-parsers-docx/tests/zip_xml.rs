//! The blocks that `DocxXml` finds in documents.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{archive, check, docx, file, parse, plain, styled};
use lkr_parsers::{Clock, Deadline, ErrorKind, Parser, Source};
use lkr_parsers_docx::DocxXml;

#[track_caller]
fn assert_rejected(bytes: &[u8], kind: ErrorKind, reason: &str) {
    let error = parse(bytes).unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains(reason)), (kind, true), "{error}");
}

const STYLES: &str = "<w:styles>\
    <w:style w:type=\"paragraph\" w:default=\"1\" w:styleId=\"a\"><w:name w:val=\"Normal\"/></w:style>\
    <w:style w:styleId=\"T\"><w:name w:val=\"Title\"/></w:style>\
    <w:style w:styleId=\"b2\"><w:name w:val=\"heading 2\"/></w:style>\
    <w:style w:styleId=\"mine\"><w:name w:val=\"Chapter\"/><w:basedOn w:val=\"b2\"/></w:style>\
    <w:style w:styleId=\"toc\"><w:basedOn w:val=\"b2\"/><w:pPr><w:outlineLvl w:val=\"9\"/></w:pPr></w:style>\
    <w:style w:styleId=\"out\"><w:name w:val=\"x\"/><w:pPr><w:outlineLvl w:val=\"3\"/></w:pPr></w:style>\
    <w:style w:styleId=\"loop\"><w:basedOn w:val=\"loop\"/></w:style>\
    <w:style w:styleId=\"gone\"><w:rPr><w:vanish/></w:rPr></w:style>\
    </w:styles>";

#[test]
fn heading_level_follows_style_and_outline_level() {
    let body: String = ["T", "b2", "mine", "toc", "out", "loop", "none"].map(|id| styled(id, id)).concat();
    let own = "<w:p><w:pPr><w:outlineLvl w:val=\"0\"/></w:pPr><w:r><w:t>own</w:t></w:r></w:p>";
    check(
        &docx(&(body + own), &[("styles", STYLES)]),
        &["h1 T", "h2 b2", "h2 mine", "p toc", "h4 out", "p loop", "p none", "h1 own"],
    );
}

#[test]
fn tracked_changes_are_accepted_and_hidden_text_left_out() {
    let body = "<w:p><w:r><w:t xml:space=\"preserve\">a </w:t></w:r>\
        <w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del>\
        <w:moveFrom><w:r><w:t>from</w:t></w:r></w:moveFrom><w:moveTo><w:r><w:t>to</w:t></w:r></w:moveTo>\
        <w:r><w:instrText>PAGE</w:instrText></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>\
        <w:r><w:rPr><w:vanish w:val=\"0\"/></w:rPr><w:t>seen</w:t></w:r>\
        <w:r><w:rPr><w:rStyle w:val=\"gone\"/></w:rPr><w:t>hidden</w:t></w:r>\
        <w:hyperlink><w:r><w:t>link</w:t></w:r></w:hyperlink></w:p>";
    check(&docx(&(body.to_owned() + &styled("gone", "x")), &[("styles", STYLES)]), &["p a newtoseenlink"]);
}

#[test]
fn rows_and_cells_with_tracked_deletion_are_left_out() {
    let cell =
        |properties: &str, text: &str| format!("<w:tc><w:tcPr>{properties}</w:tcPr>{}</w:tc>", plain(text));
    let row = |properties: &str, cells: &str| format!("<w:tr><w:trPr>{properties}</w:trPr>{cells}</w:tr>");
    let pair = |text: &str| cell("", text) + &cell("", text);
    let inner = format!("<w:tc><w:tbl>{}</w:tbl></w:tc>", row("<w:del/>", &pair("gone")));
    let body = format!(
        "<w:tbl>{}{}{}{}{}</w:tbl>",
        row("<w:del w:id=\"1\" w:author=\"x\"/>", &pair("gone")),
        row("<w:ins/><w:trPrChange><w:trPr><w:del/></w:trPr></w:trPrChange>", &pair("new")),
        row("", &(cell("<w:cellDel/>", "gone") + &pair("kept"))),
        row("", &(inner + &cell("", "beside"))),
        // This property hides only the row mark; text is hidden by the properties of its runs.
        row("<w:hidden/>", &pair("last")),
    );
    check(&docx(&body, &[]), &["t new | new\nkept | kept\n | beside\nlast | last"]);
    let only = format!("<w:tbl>{}</w:tbl>{}", row("<w:del/>", &cell("", "gone")), plain("end"));
    check(&docx(&only, &[]), &["p end"]);
}

#[test]
fn field_instructions_are_left_out() {
    let mark = |kind: &str| format!("<w:r><w:fldChar w:fldCharType=\"{kind}\"/></w:r>");
    let words = |text: &str| format!("<w:r><w:t xml:space=\"preserve\">{text}</w:t></w:r>");
    let (begin, separate, end) = (mark("begin"), mark("separate"), mark("end"));
    let field = |instruction: &str, result: &str| format!("{begin}{instruction}{separate}{result}{end}");
    let paragraph = |runs: &[String]| format!("<w:p>{}</w:p>", runs.concat());
    let nested =
        field(&(words("IF ") + &field(&words("PAGE"), &words("3")) + &words(" = 1")), &words("many"));
    let link = field(&words("HYPERLINK"), &(words("a ") + &field(&words("REF"), &words("b")) + &words(" c")));
    let body = [
        paragraph(&[words("so "), nested, words(" pages")]),
        paragraph(&[link]),
        paragraph(&[words("x"), begin.clone(), words("XE"), end.clone(), words("y")]),
        // The instruction of a field that does not end in its paragraph is kept.
        paragraph(&[words("open "), begin, words("words")]),
        paragraph(&[words("next"), separate, end, words(" ones")]),
    ];
    check(&docx(&body.concat(), &[]), &["p so many pages", "p a b c", "p xy", "p open words", "p next ones"]);
}

#[test]
fn notes_and_text_boxes_of_hidden_runs_are_hidden() {
    let notes = "<w:footnotes><w:footnote w:id=\"2\"><w:p><w:r><w:t>note</w:t></w:r></w:p></w:footnote></w:footnotes>";
    let hidden = "<w:rPr><w:vanish/></w:rPr>";
    let row = format!("<w:tbl><w:tr><w:tc>{0}</w:tc><w:tc>{0}</w:tc></w:tr></w:tbl>", plain("cell"));
    let body = format!(
        "<w:p><w:r>{hidden}<w:footnoteReference w:id=\"2\"/>\
         <w:txbxContent>{}{row}<w:p><w:r><w:rPr><w:vanish w:val=\"0\"/></w:rPr><w:t>box</w:t></w:r></w:p></w:txbxContent>\
         <w:ruby><w:rt><w:r><w:t>ruby</w:t></w:r></w:rt></w:ruby><w:t>after</w:t></w:r>\
         <m:oMath><m:r>{hidden}<m:t>math</m:t></m:r></m:oMath><w:r><w:t>seen</w:t></w:r></w:p>",
        plain("box")
    );
    check(&docx(&body, &[("footnotes", notes)]), &["p seen"]);
}

#[test]
fn long_heading_becomes_paragraph() {
    let (short, long) = ("a".repeat(300), "a ".repeat(151));
    let body = styled("T", &short) + &styled("T", &long);
    check(&docx(&body, &[("styles", STYLES)]), &[&format!("h1 {short}"), &format!("p {}", long.trim_end())]);
}

#[test]
fn character_references_and_symbols_are_resolved() {
    let body = "<w:p><w:r><w:t>a&amp;&#98;&lt;&unknown;</w:t><w:tab/><w:t>c</w:t><w:br/><w:t>d</w:t><w:noBreakHyphen/>\
        <w:softHyphen/><w:t><![CDATA[e<]]></w:t><w:sym w:char=\"F0FC\"/><w:sym w:char=\"2713\"/></w:r>\
        <m:oMath><m:r><m:t>x</m:t></m:r><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:oMath></w:p>";
    check(&docx(body, &[]), &["p a&b<\tc\nd\u{2011}e<✓x^2"]);
}

#[test]
fn characters_of_symbol_fonts_are_letters_and_signs() {
    let fonts = |name: &str| format!("<w:rPr><w:rFonts w:ascii=\"{name}\" w:hAnsi=\"{name}\"/></w:rPr>");
    let body = format!(
        "<w:p><w:r><w:t>5 </w:t><w:sym w:font=\"Symbol\" w:char=\"F06D\"/><w:t>m </w:t>\
         <w:sym w:font=\"Wingdings\" w:char=\"F0E0\"/><w:sym w:font=\"Wingdings\" w:char=\"F04A\"/></w:r>\
         <w:r>{}<w:t>b\u{f0b3}2</w:t></w:r><w:r>{}<w:t>b</w:t></w:r></w:p>",
        fonts("Symbol"),
        fonts("Arial"),
    );
    check(&docx(&body, &[]), &["p 5 μm →β≥2b"]);
}

#[test]
fn pronunciation_follows_the_text_that_it_belongs_to() {
    let body = "<w:p><w:r><w:t>私は</w:t></w:r><w:r><w:ruby><w:rubyPr/><w:rt><w:r><w:t>とうきょう</w:t></w:r></w:rt>\
        <w:rubyBase><w:r><w:t>東京</w:t></w:r></w:rubyBase></w:ruby></w:r><w:r><w:t>に行く</w:t></w:r></w:p>";
    check(&docx(body, &[]), &["p 私は東京(とうきょう)に行く"]);
}

/// The instruction of a field is removed, and what is before it may have become shorter or longer meanwhile.
#[test]
fn fields_may_begin_within_pronunciations_and_formulas() {
    let mark = |mark: &str| format!("<w:r><w:fldChar w:fldCharType=\"{mark}\"/></w:r>");
    let ruby = format!(
        "<w:p><w:r><w:ruby><w:rt><w:r><w:t>a</w:t></w:r>{}</w:rt><w:rubyBase><w:r><w:t>東</w:t></w:r>{}</w:rubyBase>\
         </w:ruby></w:r></w:p>",
        mark("begin"),
        mark("end"),
    );
    let formula = format!(
        "<w:p><m:oMath><m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>é</m:t></m:r>{}<m:r><m:t>+a</m:t></m:r>\
         </m:sup></m:sSup></m:oMath>{}<w:r><w:t>z</w:t></w:r></w:p>",
        mark("begin"),
        mark("separate"),
    );
    check(&docx(&ruby, &[]), &["p (a)"]);
    check(&docx(&formula, &[]), &["p x^(éz"]);
}

#[test]
fn formulas_have_their_brackets_operators_and_rows() {
    let run = |text: &str| format!("<m:r><m:t>{text}</m:t></m:r>");
    let part = |name: &str, content: &str| format!("<m:{name}>{content}</m:{name}>");
    let argument = |text: &str| part("e", &run(text));
    let row = |a: &str, b: &str| part("mr", &(argument(a) + &argument(b)));
    let fraction = |a: &str, b: &str| part("f", &(part("num", &run(a)) + &part("den", &run(b))));
    let power = |base: &str, exponent: &str| part("sSup", &(part("e", base) + &part("sup", &run(exponent))));
    for (formula, expected) in [
        (run("f") + &part("d", &(part("dPr", "") + &argument("x"))), "f(x)"),
        (
            part(
                "d",
                &format!(
                    "<m:dPr><m:begChr m:val=\"[\"/><m:sepChr m:val=\";\"/><m:endChr m:val=\"\"/></m:dPr>{}{}",
                    argument("a"),
                    argument("b"),
                ),
            ),
            "[a;b",
        ),
        (power(&part("d", &argument("x+1")), "2"), "(x+1)^2"),
        (power(&run("2"), "n+1"), "2^(n+1)"),
        (power(&run("2"), "-1"), "2^-1"),
        (fraction("a+b", "c"), "(a+b)/c"),
        (part("f", &(part("num", &run("1")) + &part("den", &part("d", &argument("a+b"))))), "1/(a+b)"),
        (
            part(
                "nary",
                &format!(
                    "<m:naryPr><m:chr m:val=\"∑\"/></m:naryPr>{}{}{}",
                    part("sub", &run("i=1")),
                    part("sup", &run("n")),
                    argument("i"),
                ),
            ),
            "∑_(i=1)^ni",
        ),
        (part("nary", &("<m:naryPr/><m:sub/><m:sup/>".to_owned() + &argument("x"))), "∫x"),
        (part("rad", &("<m:deg/>".to_owned() + &argument("x+1"))), "√(x+1)"),
        (part("rad", &(part("deg", &run("3")) + &argument("x"))), "3√x"),
        (part("d", &part("e", &part("m", &(row("1", "2") + &row("3", "4"))))), "(1 2; 3 4)"),
        (run("x") + &part("d", &part("e", "")), "x"),
        (run("2") + &fraction("1", "2"), "2 1/2"),
        (part("eqArr", &(argument("a") + &part("e", ""))) + &run("b"), "ab"),
        (part("rad", &(part("deg", &run("3")) + &part("e", ""))) + &run("x"), "3x"),
    ] {
        let body = format!("<w:p><m:oMath>{formula}</m:oMath></w:p>");
        check(&docx(&body, &[]), &[&format!("p {expected}")]);
    }
}

const OUTLINE: &str = "<w:numbering><w:abstractNum w:abstractNumId=\"1\">\
    <w:lvl w:ilvl=\"0\"><w:numFmt w:val=\"decimal\"/><w:lvlText w:val=\"%1.\"/></w:lvl>\
    <w:lvl w:ilvl=\"1\"><w:numFmt w:val=\"decimal\"/><w:lvlText w:val=\"%1.%2\"/></w:lvl></w:abstractNum>\
    <w:num w:numId=\"1\"><w:abstractNumId w:val=\"1\"/></w:num>\
    <w:abstractNum w:abstractNumId=\"2\"><w:lvl w:ilvl=\"0\"><w:numFmt w:val=\"bullet\"/></w:lvl></w:abstractNum>\
    <w:num w:numId=\"2\"><w:abstractNumId w:val=\"2\"/></w:num></w:numbering>";

#[test]
fn numbered_headings_count_in_their_lists() {
    let styles = "<w:styles><w:style w:styleId=\"h\"><w:name w:val=\"heading 1\"/>\
        <w:pPr><w:numPr><w:numId w:val=\"1\"/></w:numPr></w:pPr></w:style></w:styles>";
    let numbered = |style: &str, list: u8, level: u8, text: &str| {
        format!(
            "<w:p><w:pPr><w:pStyle w:val=\"{style}\"/><w:numPr><w:ilvl w:val=\"{level}\"/><w:numId w:val=\"{list}\"/>\
             </w:numPr></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"
        )
    };
    let body = [
        styled("h", "Scope"),
        numbered("", 1, 1, "x"),
        numbered("", 1, 1, "y"),
        styled("h", "Terms"),
        numbered("", 1, 1, "z"),
        numbered("h", 0, 0, "Annex"),
        numbered("h", 2, 0, "Notes"),
    ];
    check(
        &docx(&body.concat(), &[("styles", styles), ("numbering", OUTLINE)]),
        &["h1 Scope", "l 1.1 x\n  1.2 y", "h1 Terms", "l 2.1 z", "h1 Annex", "h1 Notes"],
    );
}

#[test]
fn list_of_a_list_style_has_the_levels_of_the_style() {
    let numbering = "<w:numbering>\
        <w:abstractNum w:abstractNumId=\"1\"><w:numStyleLink w:val=\"mine\"/></w:abstractNum>\
        <w:abstractNum w:abstractNumId=\"2\"><w:styleLink w:val=\"mine\"/>\
        <w:lvl w:ilvl=\"0\"><w:numFmt w:val=\"upperRoman\"/><w:lvlText w:val=\"%1)\"/></w:lvl></w:abstractNum>\
        <w:num w:numId=\"1\"><w:abstractNumId w:val=\"1\"/></w:num></w:numbering>";
    let item = "<w:p><w:pPr><w:numPr><w:numId w:val=\"1\"/></w:numPr></w:pPr><w:r><w:t>x</w:t></w:r></w:p>";
    check(&docx(&item.repeat(2), &[("numbering", numbering)]), &["l I) x\nII) x"]);
}

#[test]
fn list_items_have_markers_of_their_definition() {
    let numbering = "<w:numbering><w:abstractNum w:abstractNumId=\"1\">\
        <w:lvl w:ilvl=\"0\"><w:start w:val=\"2\"/><w:numFmt w:val=\"decimal\"/><w:lvlText w:val=\"%1.\"/></w:lvl>\
        <w:lvl w:ilvl=\"1\"><w:numFmt w:val=\"lowerLetter\"/><w:lvlText w:val=\"%1%2)\"/></w:lvl></w:abstractNum>\
        <w:abstractNum w:abstractNumId=\"2\"><w:lvl w:ilvl=\"0\"><w:numFmt w:val=\"bullet\"/></w:lvl></w:abstractNum>\
        <w:num w:numId=\"1\"><w:abstractNumId w:val=\"1\"/></w:num>\
        <w:num w:numId=\"2\"><w:abstractNumId w:val=\"2\"/></w:num>\
        <w:num w:numId=\"3\"><w:abstractNumId w:val=\"1\"/><w:lvlOverride w:ilvl=\"0\"><w:startOverride w:val=\"7\"/></w:lvlOverride></w:num>\
        </w:numbering>";
    let item = |list: u8, level: u8| {
        format!(
            "<w:p><w:pPr><w:numPr><w:ilvl w:val=\"{level}\"/><w:numId w:val=\"{list}\"/></w:numPr></w:pPr>\
             <w:r><w:t>x</w:t></w:r></w:p>"
        )
    };
    let body =
        [(1, 0), (1, 1), (1, 1), (1, 0), (2, 0), (9, 0), (0, 0), (3, 0)].map(|(a, b)| item(a, b)).concat();
    check(
        &docx(&body, &[("numbering", numbering)]),
        &["l 2. x\n  2a) x\n  2b) x\n3. x\n- x\n- x", "p x", "l 7. x"],
    );
}

#[test]
fn table_is_one_block_and_single_cell_is_transparent() {
    let cell = |content: &str| format!("<w:tc>{content}</w:tc>");
    let row = |cells: &[String]| format!("<w:tr>{}</w:tr>", cells.concat());
    let inner = format!("<w:tbl>{}</w:tbl>", row(&[cell(&plain("in")), cell(&plain("ner"))]));
    let body = format!(
        "<w:tbl>{}{}</w:tbl>{}",
        row(&[cell(&(plain("a") + &plain("b"))), cell(&plain("c"))]),
        row(&[cell(&inner), cell(&plain(""))]),
        plain("after")
    );
    check(&docx(&body, &[]), &["t a b | c\nin | ner |", "p after"]);
    let frame = format!("<w:tbl>{}</w:tbl>", row(&[cell(&(styled("b2", "head") + &plain("text")))]));
    check(&docx(&frame, &[("styles", STYLES)]), &["h2 head", "p text"]);
}

#[test]
fn text_boxes_follow_paragraph_and_notes_come_last() {
    let notes = "<w:footnotes><w:footnote w:id=\"2\"><w:p><w:r><w:t>See</w:t></w:r></w:p>\
        <w:p><w:r><w:t>there.</w:t></w:r></w:p></w:footnote><w:footnote w:id=\"3\"/></w:footnotes>";
    let body = "<w:p><w:r><w:t>words</w:t><w:footnoteReference w:id=\"2\"/><w:footnoteReference w:id=\"3\"/></w:r>\
        <w:r><mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></mc:Choice>\
        <mc:Fallback><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></mc:Fallback></mc:AlternateContent>\
        <w:t> more</w:t></w:r></w:p>";
    check(&docx(body, &[("footnotes", notes)]), &["p words[1] more", "p box", "p [1] See there."]);
}

#[test]
fn xml_in_other_encodings_is_decoded() {
    let space = "xmlns:w=\"http://purl.oclc.org/ooxml/wordprocessingml/main\"";
    let body = format!("<w:document {space}><w:body>{}</w:body></w:document>", plain("Café"));
    let wide: Vec<u8> = body.encode_utf16().flat_map(u16::to_le_bytes).collect();
    check(&file(&wide, &[]), &["p Café"]);
    let latin = format!("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>{body}").replace('é', "\u{1}");
    let latin: Vec<u8> = latin.bytes().map(|byte| if byte == 1 { 0xe9 } else { byte }).collect();
    check(&file(&latin, &[]), &["p Café"]);
}

#[test]
fn file_without_word_document_is_rejected() {
    assert_rejected(&archive(&[("a", b"b")]), ErrorKind::Input, "no main part");
    assert_rejected(&file(b"<a/>", &[]), ErrorKind::Input, "not a Word document");
    assert_rejected(
        &file(b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", &[]),
        ErrorKind::Input,
        "document type",
    );
    assert_rejected(b"\xff\xd8\xff\xe0\x00\x10JFIF\x00", ErrorKind::Input, "an image");
}

#[test]
fn document_with_only_pictures_is_refused_as_pictures() {
    let picture = "<w:p><w:r><w:drawing><pic:pic/></w:drawing></w:r></w:p>";
    assert_rejected(&docx(picture, &[]), ErrorKind::Pictures, "save it as PDF, and read it with OCR");
    check(&docx(&(picture.to_owned() + &plain("words")), &[]), &["p words"]);
    check(&docx("<w:p/>", &[]), &[]);
}

#[test]
fn damaged_archive_is_refused_as_damaged() {
    let bytes = docx(&plain("words"), &[]);
    assert_rejected(&bytes[..bytes.len() / 2], ErrorKind::Damaged, "it is damaged or incomplete");
    assert_rejected(&file(b"<w:document", &[]), ErrorKind::Damaged, "it is damaged or incomplete");
}

#[test]
fn nesting_and_text_beyond_limits_are_rejected() {
    assert_rejected(&docx(&"<w:tbl><w:tr><w:tc>".repeat(200), &[]), ErrorKind::Limit, "512 levels");
    let long = " ".repeat(17 << 20);
    assert_rejected(&docx(&plain(&long), &[]), ErrorKind::Limit, "16 MiB");
    let paragraph = plain(&"word ".repeat(200_000));
    assert_rejected(&docx(&paragraph.repeat(70), &[]), ErrorKind::TooMuchText, "64 MiB of text");
}

#[test]
fn invalid_parts_are_skipped_with_warning() {
    let parsed = parse(&docx(&(plain("one") + "<w:p><w:r><w:t>two</w:p>"), &[])).unwrap();
    assert_eq!((parsed.text.as_str(), parsed.warnings.len()), ("one\n\ntwo", 1));
    let parsed = parse(&docx(&plain("one"), &[("styles", "<w:styles><broken")])).unwrap();
    assert_eq!((parsed.text.as_str(), parsed.warnings.len()), ("one", 1));
}

#[test]
fn parser_stops_at_deadline_with_warning() {
    let bytes = docx(&plain("word").repeat(5000), &[]);
    let source = Source {
        deadline: Some(Deadline::after(Clock::Wall, std::time::Duration::ZERO)),
        ..Source::new(&bytes)
    };
    let parsed = DocxXml.parse(&source).unwrap();
    assert!(parsed.text.len() < 5000 * 4 && !parsed.text.is_empty());
    assert_eq!(parsed.warnings, ["the deadline passed; the rest of the text was not read"]);
}

#[test]
fn text_below_one_point_is_hidden() {
    let sized = |size: &str| {
        format!("<w:p><w:r><w:rPr><w:sz w:val=\"{size}\"/></w:rPr><w:t>size {size}</w:t></w:r></w:p>")
    };
    check(&docx(&["1", "0", "2", "20"].map(sized).concat(), &[]), &["p size 2", "p size 20"]);
}
