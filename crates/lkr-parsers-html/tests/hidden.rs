//! Hidden and visible text, for both parsers.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use lkr_parsers::Parser;
use lkr_parsers_html::{Article, PlainHtml};
use proptest::prelude::*;

fn read(html: &str) -> [(&'static str, String); 2] {
    [&Article as &dyn Parser, &PlainHtml]
        .map(|parser| (parser.name(), parser.parse(&html.into()).unwrap().text))
}

/// Asserts that each page shows "seen" and hides "secret".
#[track_caller]
fn assert_hidden(pages: &[&str]) {
    for page in pages {
        for (name, text) in read(page) {
            assert!(!text.contains("secret") && text.contains("seen"), "{name}: {page}\n{text}");
        }
    }
}

#[track_caller]
fn assert_shown(pages: &[&str]) {
    for page in pages {
        for (name, text) in read(page) {
            assert!(text.contains("seen"), "{name}: {page}\n{text}");
        }
    }
}

fn styled(style: &str) -> String {
    format!("<p>seen</p><div style='{style}'>secret <b>secret</b></div><p>seen</p>")
}

const HIDING: [&str; 55] = [
    "color:white",
    "color:#fff",
    "color:#FFFFFF",
    "color: rgb(255, 255, 255)",
    "color:hsl(0,0%,100%)",
    "color:transparent",
    "color:rgba(0,0,0,0)",
    "color:#00000000",
    "color:white !important;color:red",
    "color:red;background:red",
    "color:#123456;background-color:#123456",
    "background:black;color:#000",
    "-webkit-text-fill-color:transparent",
    "position:absolute;left:-9999px",
    "position:fixed;top:-1000px",
    "position:absolute;left:-100em",
    "text-indent:-9999px",
    "transform:scale(0)",
    "transform:rotate(3deg) scale( 0, 0 )",
    "transform:translateX(-9999px)",
    "scale:0",
    "position:absolute;clip:rect(0,0,0,0)",
    "position:absolute;clip:rect(1px 1px 1px 1px)",
    "clip:rect(0 0 0 0)",
    "clip-path:inset(100%)",
    "clip-path:inset(50%)",
    "clip-path:circle(0)",
    "clip-path:polygon(0 0, 0 0)",
    "height:0;overflow:hidden",
    "width:0;overflow:hidden",
    "max-height:0px;overflow:hidden",
    "height:1px;width:1px;overflow:hidden",
    "opacity:0",
    "opacity:.05",
    "opacity:1%",
    "filter:opacity(0)",
    "font-size:0",
    "font-size:1px",
    "font-size:.5pt",
    "font-size:.01em",
    "font:1px/1 serif",
    "font:italic bold 0 serif",
    "content-visibility:hidden",
    "d\\69splay:none",
    "display:/**/none",
    "display:none;display:nonsense",
    "/*;*/display:none",
    "background:url(a;b);display:none",
    "visibility:hidden",
    "VISIBILITY : COLLAPSE",
    "animation:none;opacity:0",
    "animation:x;opacity:0",
    "display:\nnone",
    "display:none!important;display:block",
    "font-family:\";\";display:none",
];

#[test]
fn hiding_styles_hide_text() {
    for style in HIDING {
        assert_hidden(&[&styled(style)]);
        assert_hidden(&[&format!("<style>.x {{ {style} }}</style><p>seen<div class='y x'>secret</div>")]);
    }
}

#[test]
fn conditional_colours_do_not_hide_text() {
    // `:hover` and `.night` change both colours together.
    let button = ".button {color:#fff;background:#000} .button:hover {color:#000;background:#fff}";
    let dark = ".dark {color:#000} .night .dark {background:#000;color:#fff}";
    assert_shown(&[
        &format!("<style>{button}</style><p>words</p><div class=button>seen</div>"),
        &format!("<style>{dark}</style><p>words</p><div class=night><p class=dark>seen</div>"),
    ]);
}

#[test]
fn lazily_loaded_elements_are_shown_unless_display_none() {
    let page_with = |rule: &str, style: &str| {
        format!(
            "<style>.lazyload {{{rule}}} .pale {{color:#fff}}</style><p>words</p>\
             <div class='x lazyload' style='{style}'>seen</div>\
             <footer class=lazyload><p class=pale>seen</p></footer>"
        )
    };
    for rule in ["opacity:0", "filter:blur(4px);opacity:0;transform:scale(1.02)", "visibility:hidden"] {
        for (name, text) in read(&page_with(rule, "")) {
            assert_eq!(text.matches("seen").count(), 2, "{name}: {rule}\n{text}");
        }
        for (name, text) in read(&page_with(rule, "opacity:0")) {
            assert_eq!(text.matches("seen").count(), 1, "{name}: {rule}\n{text}");
        }
    }
    for (name, text) in read(&page_with("display:none", "")) {
        assert!(!text.contains("seen"), "{name}\n{text}");
    }
}

#[test]
fn hiding_attributes_and_elements_hide_text() {
    assert_hidden(&[
        "<p>seen<p aria-hidden=true>secret",
        "<p>seen<div aria-hidden=' TRUE '><p>secret</div>",
        "<p>seen <font color=white>secret</font>",
        "<p>seen <font color='#FFF'>secret</font>",
        "<p>seen<table bgcolor=red><tr><td><font color=red>secret</font></table>",
        "<p>seen<svg><title>secret</title><desc>secret</desc><metadata>secret</metadata><defs><text>secret</text></defs></svg>",
        "<p>seen<audio>secret</audio><video>secret</video><canvas>secret</canvas><iframe>secret</iframe>",
        "<p>seen<object data=a.pdf>secret</object>",
        "<p>seen<div style='visibility:hidden'>secret<b style='visibility:visible'>seen</b>secret</div>",
    ]);
}

#[test]
fn unconditional_rules_hide_text() {
    for sheet in [
        ".x{display:none}",
        "#i{visibility:hidden}",
        "div{opacity:0}",
        "DIV{opacity:0}",
        "div.x{display:none}",
        "p.z,a:hover,.x{display:none}",
        ".x{display:block}.x{display:none}",
        ".x{display:none !important}.x{display:block}",
        "#i{display:none}.x{display:block}",
        "<!-- .x{display:none} -->",
        "/*}*/.x{content:'}';display:none}",
        "@charset 'utf-8';.x{display:none",
        "@media print{.x{display:block}}.x{display:none}",
        "@font-face{font-family:a}.x{display:none}",
        ".x::before{display:block}.x{display:none}",
        ".sr-only{left:0}.x{position:absolute;width:1px;height:1px;overflow:hidden;clip:rect(0,0,0,0)}",
    ] {
        assert_hidden(&[&format!("<style>{sheet}</style><p>seen<div class=x id=i>secret</div>")]);
    }
    assert_hidden(&["<p>seen<style media=screen>.x{display:none}</style><div class=x>secret</div>"]);
}

#[test]
fn styles_that_may_leave_text_visible_do_not_hide_it() {
    for style in [
        "color:white;background:black",
        "color:white;background-image:url(a.png)",
        "color:white;background:linear-gradient(red,blue)",
        "color:transparent;background:linear-gradient(red,blue);-webkit-background-clip:text",
        "color:white;text-shadow:0 0 2px black",
        "color:#eee",
        "color:var(--ink)",
        "color:red;background:blue",
        "left:-9999px",
        "position:relative;left:-10px",
        "position:absolute;left:-100px",
        "text-indent:-2em",
        "transform:scale(.5)",
        "clip:auto",
        "clip:rect(0,100px,100px,0)",
        "clip-path:inset(10%)",
        "height:0",
        "height:0;overflow:hidden;padding-bottom:56%",
        "width:0;min-width:100%;overflow:hidden",
        "overflow:hidden;height:10px",
        "opacity:.5",
        "font-size:2px",
        "font:bold 12px/1 serif",
        "display:none;display:block",
        "display:bogus",
        "dis/**/play:none",
        "content:\"display:none;\"",
        "visibility:visible",
        "height:1em;width:1px;overflow:visible",
    ] {
        assert_shown(&[
            &format!("<div style='{style}'>seen</div>"),
            &format!("<style>.x{{{style}}}</style><div class=x>seen</div>"),
        ]);
    }
}

#[test]
fn outer_and_inner_elements_can_make_text_visible() {
    assert_shown(&[
        "<div style='background:#000'><p><span style='color:white'>seen</span></div>",
        "<div style='color:white'><p style='background:navy'>seen</div>",
        "<div style='color:white'><a href=x>seen</a></div>",
        "<div style='color:white'><p style='color:black'>seen</div>",
        "<body bgcolor=black text=white>seen",
        "<table bgcolor=black><tr><td><font color=white>seen</font></table>",
        "<div style='color:white'><button>seen</button></div>",
        "<img src=a><div style='position:absolute;color:white'>seen</div>",
        "<link rel=stylesheet href=a><div class=hero><p style='color:white'>seen</div>",
        "<style>body{background:#111}</style><p style='color:white'>seen",
        "<style>.hero p{background:#111}</style><p style='color:white'>seen",
        "<span style='height:0;overflow:hidden'>seen</span>",
        "<span style='text-indent:-9999px'>seen</span>",
        "<div style='text-indent:-9999px'><p style='text-indent:0'>seen</div>",
        "<p aria-hidden=false>seen",
        "<p aria-hidden=true>seen",
        "<title>a</title><div aria-hidden=true>seen</div>",
        "<p>seen<svg><text>a</text></svg>",
        "<object><p>seen</object>",
        "<details><summary>a</summary>seen</details>",
        "<style>@keyframes x{to{opacity:1}}</style><p style='opacity:0;animation:x 1s'>seen",
        "<style>mjx-assistive-mml{clip:rect(1px,1px,1px,1px)}</style><p>a <mjx-assistive-mml>seen</mjx-assistive-mml>",
        "<style>.katex-mathml{clip:rect(0,0,0,0)}</style><p>a <span class=katex-mathml>seen</span>",
    ]);
}

#[test]
fn conditional_rules_do_not_hide_text() {
    for sheet in [
        ".js .x{display:none}",
        ".x:hover{display:none}",
        ".x:not(.y){display:none}",
        ".x.y{display:none}",
        ".a>.x{display:none}",
        "*{display:none}",
        "[id]{display:none}",
        "body{display:none}",
        "html,body{opacity:0}",
        "@media print{.x{display:none}}",
        "@media (max-width:600px){.x{display:none}}",
        "@media screen{@media print{.x{display:none}}}",
        "@supports (a:b){.x{display:none}}",
        ".x{display:none}.x{display:block}",
        ".x{display:none}#i{display:block}",
        ".x{display:none}.open .x{display:block}",
        ".x{display:none}.x:hover{display:block}",
        ".x{display:none}@media (min-width:9px){.x{display:block}}",
        ".x{display:none;&.open{display:block}}",
        ".x{opacity:0}.x.in{opacity:1}",
        "/*.x{display:none}*/",
        "@keyframes x{from{opacity:0}}.x{color:red}",
        "y{content:'.x{display:none}'}",
    ] {
        assert_shown(&[&format!("<style>{sheet}</style><div class='x js' id=i>seen</div>")]);
    }
    assert_shown(&[
        "<style media=print>.x{display:none}</style><p class=x>seen",
        "<noscript><style>.x{display:none}</style></noscript><p class=x>seen",
        "<!--<style>.x{display:none}</style>--><p class=x>seen",
        "<style>.x{display:none}</style><p class=x style='display:block'>seen",
    ]);
}

#[test]
fn rules_that_hide_almost_everything_are_ignored() {
    let long = "words and seen ".repeat(400);
    assert_shown(&[
        &format!("<div aria-hidden=true>{long}</div><div role=dialog>Cookies?</div>"),
        &format!("<style>#app{{display:none}}</style><div id=app>{long}</div><p>Loading"),
    ]);
    let secret = "secret ".repeat(400);
    assert_hidden(&[&format!("<p>seen<div style='display:none'>{secret}</div>")]);
}

#[test]
fn large_style_sheets_are_read_in_bounded_time() {
    let lists = format!("{}{{display:none}}", ".z,".repeat(300_000));
    let open = "z{".repeat(300_000);
    let comments = "/*".repeat(300_000);
    let classes = format!("<p class='{}'>seen", "a ".repeat(300_000));
    for sheet in
        [lists, open, comments, "@media x{".repeat(100_000), "\\".repeat(500_000), "url(".repeat(200_000)]
    {
        for (name, text) in read(&format!("<style>{sheet}</style>{classes}")) {
            assert_eq!(text, "seen", "{name}: {}", sheet.chars().take(9).collect::<String>());
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_style_sheet_is_accepted(
        parts in prop::collection::vec("[.#@a-c{};:!,()\\[\\]\\\\/*'\" é-]|display:none|url\\(|@media|opacity:0|color:white", 0..60),
    ) {
        let css = parts.concat();
        let page = format!("<style>{css}</style><p class='a b c' id=a style='{}'>text<p>seen", css.replace('\'', ""));
        read(&page);
    }
}
