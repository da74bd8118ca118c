//! The blocks that `Article` finds in pages.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use lkr_domain::{BlockKind, Parsed};
use lkr_parsers::{Parser, Source};
use lkr_parsers_html::Article;

fn parse(html: &str) -> Parsed {
    Article.parse(&html.into()).unwrap()
}

/// The blocks of a page in short form: a letter for the kind, the level of a heading, the text. Furniture is in
/// parentheses.
fn outline(parsed: &Parsed) -> Vec<String> {
    let describe = |block: &lkr_domain::Block| {
        let text = parsed.text.get(block.range.clone()).unwrap();
        let line = match &block.kind {
            BlockKind::Heading { level, title } => format!("h{level} {title}"),
            BlockKind::Paragraph => format!("p {text}"),
            BlockKind::List => format!("l {text}"),
            BlockKind::Table => format!("t {text}"),
            BlockKind::TableHeader => format!("th {text}"),
            BlockKind::Code => format!("c {text}"),
        };
        if block.furniture { format!("({line})") } else { line }
    };
    parsed.blocks.iter().map(describe).collect()
}

#[track_caller]
fn check(html: &str, expected: &[&str]) {
    assert_eq!(outline(&parse(html)), expected);
}

const SENTENCE: &str =
    "Some words, with a comma or two, in a sentence that is long enough to be worth reading. ";

#[test]
fn inline_elements_join_and_blocks_separate_paragraphs() {
    check(
        "<h1>One <i>fine</i>\n day</h1>words<p>more\n  <b>wo</b>rds<div>and</div>so<br>on",
        &["h1 One fine day", "p words", "p more words", "p and", "p so\non"],
    );
    check("a<br><br>b<hr>c", &["p a", "p b", "p c"]);
    check("<pre>\na\n  b</pre><p>c <code>d</code>", &["c a\n  b", "p c d"]);
    check("<h2><div>a</div><div>b</div></h2>", &["h2 a b"]);
    check(&format!("<h2>{}</h2>", "a ".repeat(200)), &[&format!("p {}", "a ".repeat(200).trim())]);
}

#[test]
fn exponent_is_marked_after_its_base() {
    for (html, expected) in [
        ("10<sup>6</sup> m<sup>2</sup>, 10<sup>\u{2212}6</sup>", "10^6 m^2, 10^\u{2212}6"),
        (
            "x<sup>n</sup>, 2<sup>n+1</sup>, e<sup>-x/2</sup>, (a+b)<sup>2</sup>",
            "x^n, 2^(n+1), e^(-x/2), (a+b)^2",
        ),
        ("2<sup>2<sup>n</sup></sup>, <i>10</i><sup><b>6</b></sup>.", "2^2^n, 10^6."),
        ("SO<sub>4</sub><sup>2\u{2212}</sup>, Na<sup>+</sup>, <sup>14</sup>C", "SO4^2\u{2212}, Na+, 14C"),
        ("<math><msup><mn>10</mn><mn>6</mn></msup></math> a", "10^6 a"),
        ("a <math><mfrac><mn>1</mn><mn>2</mn></mfrac></math> b", "a 1/2 b"),
        ("2<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math> b", "2 1/2 b"),
        ("<math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mi>c</mi></mfrac></math> d", "(a+b)/c d"),
        ("<math><mfrac><mn>1</mn><mfrac><mn>2</mn><mn>3</mn></mfrac></mfrac></math> a", "1/(2/3) a"),
        (
            "a <math><semantics><mfrac><mrow><mi>x</mi><mo>+</mo><mn>1</mn></mrow><msup><mi>y</mi><mn>2</mn></msup></mfrac>\
             <annotation encoding='application/x-tex'>\\frac</annotation></semantics></math>",
            "a (x+1)/y^2",
        ),
        (
            "<math><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr><mtr><mtd><mn>3</mn></mtd></mtr></mtable></math> a",
            "1 2 3 a",
        ),
        ("<pre>10<sup>6</sup></pre>", "10^6"),
        // Ordinals, abbreviations and marks are no exponents.
        ("1<sup>st</sup> 19<sup>e</sup> M<sup>me</sup> n<sup>o</sup> 27<sup>a</sup>", "1st 19e Mme no 27a"),
        ("Brand<sup>TM</sup> and a<sup> 2 </sup>", "BrandTM and a 2"),
        // References to notes stay as they are.
        ("words<sup><a href='#1'>[1]</a></sup> and<sup>[2]</sup>", "words[1] and[2]"),
        ("words<sup><a href='#1'>1</a></sup> or<a href='#2'><sup>2</sup></a>", "words1 or2"),
        ("10<sup hidden>6</sup> 10<sup style='visibility:hidden'>6</sup>", "10 10"),
        ("10<sup></sup> <sup>6</sup>", "10 6"),
    ] {
        check(
            html,
            &[&if html.starts_with("<pre") { format!("c {expected}") } else { format!("p {expected}") }],
        );
    }
}

#[test]
fn index_is_marked_only_between_digits() {
    for (html, expected) in [
        ("H<sub>2</sub>O and x<sub>1</sub>", "p H2O and x1"),
        ("101<sub>2</sub> is 5", "p 101_2 is 5"),
        ("log<sub>2</sub>8 and log<sub>2</sub> 8", "p log2 8 and log2 8"),
    ] {
        check(html, &[expected]);
    }
}

#[test]
fn nested_lists_are_one_block_with_markers() {
    check(
        "<ul><li>a<li>b<ol start=3><li>c<li>d</ol><li>e</ul>f",
        &["l - a\n- b\n  3. c\n  4. d\n- e", "p f"],
    );
    check("<ol><li><p>a</p><p>b</p></li><li value=7>c</ol>", &["l 1. a\nb\n7. c"]);
    check("<ol start=9223372036854775807><li>a<li>b", &["l 9223372036854775807. a\n9223372036854775807. b"]);
}

#[test]
fn data_tables_are_rows_and_layout_tables_are_blocks() {
    check(
        "<table><caption>x</caption><tr><th>a<th>b<tr><td><p>c</p><p>d</p><td>e</table>",
        &["p x", "t a | b\nc d | e"],
    );
    check("<table><tr><td><h2>a</h2>b<td>c</table>", &["h2 a", "p b", "p c"]);
    check("<table><tr><td>a<tr><td>b</table>", &["p a", "p b"]);
}

#[test]
fn hidden_text_is_left_out() {
    check(
        "<body><script>a</script><style>b</style><noscript>c</noscript><p hidden>d<p style='color:red; DISPLAY : none !important'>e\
         <p style='visibility:hidden'>f<template>g</template><!-- h --><p aria-hidden=true>i",
        &["p i"],
    );
}

#[test]
fn zero_size_text_and_closed_dialogs_are_left_out() {
    check(
        "<dialog>a</dialog><dialog open>b</dialog><p style='opacity:0'>c<p style='visibility:collapse'>d\
         <p style='font-size:0px'>e<b>f</b><span style='font-size:1em'>g</span><span style='font-size:9pt'>h</span><p>i",
        &["p b", "p h", "p i"],
    );
}

#[test]
fn hidden_text_stays_hidden_beyond_nesting_limit() {
    let deep = "<div>".repeat(600);
    for (inside, expected) in [
        ("a<div hidden>b<div>c</div>d</div>e", "a\n\ne"),
        ("<p hidden>b<p>c", "c"),
        ("a<p style='display:none'>b</div>c", "a\n\nc"),
        ("<b hidden>b<i>c</b>d", "d"),
        ("<dialog>a<dialog>b</dialog>c", ""),
    ] {
        let parsed = parse(&format!("start{deep}{inside}"));
        let words: String = parsed.text.split_whitespace().skip(1).collect();
        let expected: String = expected.split_whitespace().collect();
        assert_eq!(words, expected, "{inside}");
    }
    let many: String = (0..300).map(|at| format!(" a{at}")).collect();
    assert_eq!(parse(&format!("a<p{many} hidden>b<p>c")).text, "a\n\nc");
}

#[test]
fn heading_of_many_inline_elements_is_one_heading() {
    let pieces = "<i>a</i>".repeat(20_000);
    let text = SENTENCE.repeat(5);
    let page =
        format!("<title>{pieces}</title><article><h1>{pieces}</h1><p>{text}</p><p>{text}</p></article>");
    assert!(parse(&page).text.contains(&"a".repeat(20_000)));
}

#[test]
fn adjacent_links_are_separated_by_space() {
    check("<nav><a>News</a><a>Sports</a></nav>", &["p News Sports"]);
}

#[test]
fn text_outside_article_is_furniture() {
    let text = SENTENCE.repeat(5);
    let words = text.trim_end();
    let page = format!(
        "<title>Fine day | ACME</title><nav><ul><li><a href=/>Home</a></ul></nav><h1>Fine day</h1>\
         <article><p>{text}</p><h2>Then</h2><p>{text}</p><p>{text}</p></article><footer>All rights reserved</footer>"
    );
    let paragraph = format!("p {words}");
    check(
        &page,
        &[
            "h1 Fine day",
            &paragraph,
            "h2 Then",
            &paragraph,
            &paragraph,
            "(l - Home)",
            "(p All rights reserved)",
        ],
    );
}

#[test]
fn page_with_long_title_has_no_furniture() {
    let text = SENTENCE.repeat(5);
    let long = "word ".repeat(500);
    let page = |head: &str| {
        format!("{head}<article><p>{text}</p><p>{text}</p></article><footer>All rights reserved</footer>")
    };
    let has_furniture = |page: &str| parse(page).blocks.iter().any(|block| block.furniture);
    assert!(has_furniture(&page("<title>Fine day</title>")));
    for head in [
        format!("<title>{long}</title>"),
        format!("<h1>{long}</h1>"),
        format!("<meta property='og:title' content='{long}'>"),
    ] {
        assert!(!has_furniture(&page(&head)));
    }
}

#[test]
fn page_without_article_has_no_furniture() {
    check(
        "<title>Shop</title><nav>Menu</nav><p>Buy this.</p><footer>Imprint</footer>",
        &["h1 Shop", "p Menu", "p Buy this.", "p Imprint"],
    );
    // Readability would choose one of several equally long texts.
    let text = SENTENCE.repeat(8);
    let page: String =
        (0..6).map(|at| format!("<section><h2>Part {at}</h2><ul><li>{text}</ul></section>")).collect();
    assert!(parse(&page).blocks.iter().all(|block| !block.furniture));
}

#[test]
fn pages_in_other_encodings_are_decoded() {
    let parsed = Article.parse(&Source::new(b"<meta charset=koi8-r><p>\xf0\xd2\xc9\xd7\xc5\xd4")).unwrap();
    assert_eq!(parsed.text, "Привет");
    let wide: Vec<u8> = "<p>Grüße".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(Article.parse(&Source::new(&wide)).unwrap().text, "Grüße");
}

#[test]
fn page_beyond_nesting_limit_has_warning() {
    let parsed = parse(&format!("{}deep words", "<div>".repeat(2000)));
    assert_eq!((parsed.text.as_str(), parsed.warnings.len()), ("deep words", 1));
}

#[test]
fn xml_page_with_empty_elements_keeps_its_text() {
    let body = "<body><h2/><video src='a'/><object data='b' type='c'/><p>words<script src='d'/> and more</p></body></html>";
    check(
        &format!(
            "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><title/></head>{body}"
        ),
        &["p words and more"],
    );
}
