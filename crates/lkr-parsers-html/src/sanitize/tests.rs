use proptest::prelude::*;

use super::*;

fn sanitize(html: &str) -> Sanitized<'static> {
    let Sanitized { html, is_truncated, ends_in_tag } = super::sanitize(html, MAX_TAGS);
    Sanitized { html: Cow::Owned(html.into_owned()), is_truncated, ends_in_tag }
}

#[track_caller]
fn assert_unchanged(html: &str) {
    let sanitized = sanitize(html);
    assert!(!sanitized.is_truncated);
    assert_eq!(sanitized.html, html);
}

fn depth(html: &str) -> usize {
    let document = dom_query::Document::from(html);
    document.root().descendants_it().map(|node| node.ancestors_it(None).count()).max().unwrap_or_default()
}

#[test]
fn page_within_limits_is_unchanged() {
    for html in [
        "",
        "words < and > & ü",
        "<!doctype html><html><body class='a>b'><p>One<p>Two<br/><img src=a></body>",
        "<ul><li>a<li>b<ul><li>c</ul></ul><table><tr><td>a<td>b<tr><td>c</table>",
        "<script>if (a < b) document.write('<div><div><div>')</script><p>words",
        "<title><b></title><textarea><i></textarea><style><a></style>",
        "<!-- <div> --><!--> <p> <!DOCTYPE x><?php a ?></ a>",
        "<b><i>a</b>b</i><a href='x'>c</a>",
    ] {
        assert_unchanged(html);
    }
    assert_unchanged(&"<p>unclosed<li>unclosed<dd>unclosed<option>a".repeat(2000));
    assert_unchanged(&"<tr><td>a<td>b".repeat(2000));
}

#[test]
fn nesting_depth_is_bounded_and_text_kept() {
    for unit in ["<div>", "<b>", "<span>", "<table><tr><td>", "<ul><li>", "<svg><g>", "<svg><title><div>"] {
        let sanitized = sanitize(&format!("{}hello</div> world", unit.repeat(5000)));
        assert!(sanitized.is_truncated, "{unit}");
        // The parser adds elements of its own, such as the bodies of tables.
        assert!(depth(&sanitized.html) < 2 * MAX_DEPTH, "{unit}");
        let text = dom_query::Document::from(&*sanitized.html).text();
        assert!(text.contains("hello") && text.contains("world"), "{unit}");
    }
    let sanitized = sanitize(&format!("{}a{}<p>b", "<div>".repeat(1000), "</div>".repeat(1000)));
    assert!(sanitized.html.ends_with("</div><p>b"));
    assert_eq!(sanitized.html.matches("</div>").count(), MAX_DEPTH);
}

#[test]
fn end_tags_in_scripts_do_not_reduce_depth() {
    let sanitized = sanitize(&"<div><script></div></script>".repeat(2000));
    assert!(depth(&sanitized.html) < MAX_DEPTH + 10);
}

#[test]
fn attributes_beyond_limit_are_removed() {
    let many: String = (0..1000).map(|at| format!(" a{at}='>'")).collect();
    let sanitized = sanitize(&format!("<p{many}>words</p>")).html.into_owned();
    assert!(sanitized.ends_with(" a255='>'  >words</p>"));
}

#[test]
fn formatting_is_reopened_at_most_to_limit() {
    let starts: String = (0..40).map(|at| format!("<b id={at}>")).collect();
    let sanitized = sanitize(&format!("{starts}{}", "<p>x".repeat(50_000)));
    let document = dom_query::Document::from(&*sanitized.html);
    assert!(document.tree.len() < 400_000, "{}", document.tree.len());
    assert_eq!(document.select("p").length(), 50_000);
}

#[test]
fn tags_beyond_limit_are_removed() {
    let sanitized = super::sanitize("<p>a<b>b</b><p>c<!-- d --></p>e", 3);
    assert_eq!((&*sanitized.html, sanitized.is_truncated), ("<p>a<b>b</b> c e", true));
    let stray_brackets = sanitize(&"<".repeat(MAX_STRAY_BRACKETS + 2)).html.into_owned();
    assert!(stray_brackets.ends_with("<&lt;&lt;"));
    assert_eq!(sanitize("a\0b\u{1}").html, "ab");
}

#[test]
fn comment_ends_follow_html_rules() {
    for (text, length) in [
        ("<!---->a", 7),
        ("<!--a-->b-->", 8),
        ("<!--a--!>b-->", 9),
        ("<!-- -- -- --->b", 15),
        ("<!--a--!b", 9),
        ("<!--", 4),
        ("<!-->a", 5),
        ("<!--->a", 6),
    ] {
        assert_eq!(comment_end(text), length, "{text}");
    }
}

#[test]
fn unterminated_tag_is_removed() {
    let sanitized = sanitize("words<a href='x");
    assert_eq!(sanitized.html, "words");
    assert_eq!((sanitized.is_truncated, sanitized.ends_in_tag), (false, true));
    let told: Vec<&str> = sanitized.warnings().collect();
    assert_eq!(told, ["the page ends within a tag; its end may be missing"]);
    assert_eq!(sanitize(&"<a ".repeat(100_000)).html, "");
}

proptest! {
    #[test]
    fn page_with_few_tags_is_unchanged(
        parts in prop::collection::vec(
            prop_oneof!["[a-z]{1,3} ", "<(div|b|p|li|td|table|svg|a|ul|span|option|select)>", "</(div|b|p|li|table|a)>"],
            0..60,
        ),
    ) {
        let html = parts.concat();
        prop_assert_eq!(&*sanitize(&html).html, html.as_str());
    }
}

#[test]
fn empty_elements_of_xml_have_an_end_tag() {
    let page = "<html><head><title/><script src=\"a\" /></head><body><p/><a id='b'/>words<br/><svg><g/></svg></body>";
    let expanded = "<html><head><title></title><script src=\"a\" ></script></head>\
        <body><p></p><a id='b'></a>words<br/><svg><g/></svg></body>";
    for start in ["<?xml version=\"1.0\"?>\n", " <?xml version='1.0' encoding='utf-8'?><!DOCTYPE html>"] {
        let sanitized = sanitize(&format!("{start}{page}"));
        assert_eq!(sanitized.html, format!("{start}{expanded}"));
        assert!(!sanitized.is_truncated);
        assert!(dom_query::Document::from(&*sanitized.html).select("body").text().contains("words"));
    }
    assert_unchanged(page);
    let start = "<?xml version=\"1.0\"?>";
    for name in ["ac:structured-macro", "aaaaaaaaaaaaaaaé-b"] {
        assert_eq!(sanitize(&format!("{start}<{name}/>x")).html, format!("{start}<{name}></{name}>x"));
    }
    assert_unchanged(&format!("{start}<a href=http://host/>link</a>"));
}

/// A parser repeats open formatting at each inline element, also at an empty one.
#[test]
fn empty_elements_of_xml_count_for_the_limit_of_repeated_formatting() {
    let formatting: String = (0..40).map(|id| format!("<b id=\"{id}\">")).collect();
    let page =
        format!("<?xml version=\"1.0\"?><div>{formatting}x</div>{}", "<div><span/></div>".repeat(20_000));
    let sanitized = sanitize(&page);
    let parsed = dom_query::Document::from(&*sanitized.html);
    assert!(parsed.select("b").length() <= 2 * MAX_REOPENED, "{}", parsed.select("b").length());
}
