//! The contract's rules of structure, by example.

#[path = "support/common.rs"]
mod common;

use common::{checked, layered, tree};
use lkr_domain::{Block, BlockKind, PageSpan, Parsed};

#[track_caller]
fn check(text: &str, title: &str, expected: &[&str]) {
    let layered = layered(text);
    assert_eq!(layered.root.title, title);
    assert_eq!(tree(&layered), expected);
}

const MOONS: &str = "# Moons of Jupiter

Jupiter has ninety-five moons with confirmed orbits; the four largest were seen by Galileo in January 1610.

## Io

Io is the most volcanic body of the solar system, with more than four hundred active volcanoes.

### Tidal heating

The orbital resonance with Europa and Ganymede kneads Io and melts its interior.

## Europa

Europa hides a salty ocean under a crust of ice that is some twenty kilometres thick.
";

#[test]
fn headings_make_title_sections_and_subsections() {
    let layered = layered(MOONS);
    let titles = |nodes: &[lkr_domain::Node]| nodes.iter().map(|node| node.title.clone()).collect::<Vec<_>>();
    assert_eq!(layered.root.title, "Moons of Jupiter");
    assert_eq!(layered.root.language, "en");
    assert_eq!(titles(&layered.l2)[1..], ["Io", "Europa"]);
    assert!(titles(&layered.l2)[0].starts_with("Jupiter has ninety-five moons"));
    assert!(titles(&layered.l3)[1].starts_with("Io is the most volcanic"));
    assert_eq!(titles(&layered.l3)[2..], ["Tidal heating", "Europa"]);
    assert_eq!(layered.chunks.len(), 4);
    assert_eq!(layered.chunks[0].path, [""; 0]);
    assert_eq!(layered.chunks[2].path, ["Io", "Tidal heating"]);
    assert!(layered.root.summary.contains("Jupiter has ninety-five moons"));
    assert!(layered.root.keywords.iter().any(|word| word.contains("Europa")), "{:?}", layered.root.keywords);
}

#[test]
fn text_below_the_title_has_an_empty_path() {
    check("# A\n\ntext\n", "A", &["text []", "  text []", "    text []"]);
    check(
        "---\ntitle: X\n---\n# A\n## B\nb",
        "A",
        &["X []", "  X []", "    ---\ntitle: X\n--- []", "B [\"B\"]", "  B [\"B\"]", "    b [\"B\"]"],
    );
}

#[test]
fn heading_of_markup_alone_is_text() {
    let chunk = "    ## <img alt=\"zebra\">\n\nb []";
    check("# A\n\n## <img alt=\"zebra\">\n\nb", "A", &["b []", "  b []", chunk]);
}

#[test]
fn long_sentence_is_not_cut_inside_a_number() {
    let text = (0..600).map(|n| format!("{n}.{} ", n + 7)).collect::<String>();
    assert!(layered(&text).chunks.len() > 4, "`checked` looks for each number");
}

#[test]
fn setext_headings_make_sections() {
    check("A\n===\n\nB\n---\nb", "A", &["B [\"B\"]", "  B [\"B\"]", "    b [\"B\"]"]);
}

#[test]
fn headings_in_code_make_no_section() {
    check("# A\n## B\n```\n# c\n```", "A", &["B [\"B\"]", "  B [\"B\"]", "    ```\n# c\n``` [\"B\"]"]);
}

#[test]
fn several_top_headings_are_sections() {
    check(
        "# A\na\n# B\n## C\nc",
        "A",
        &[
            "A [\"A\"]",
            "  A [\"A\"]",
            "    a [\"A\"]",
            "B [\"B\"]",
            "  C [\"B\", \"C\"]",
            "    c [\"B\", \"C\"]",
        ],
    );
}

#[test]
fn top_heading_after_text_is_a_section() {
    check(
        "lead\n\n# A\na\n## B\nb",
        "A",
        &[
            "lead []",
            "  lead []",
            "    lead []",
            "A [\"A\"]",
            "  a [\"A\"]",
            "    a [\"A\"]",
            "  B [\"A\", \"B\"]",
            "    b [\"A\", \"B\"]",
        ],
    );
    check(
        "## B\nb\n# A\na",
        "B",
        &["b []", "  B [\"B\"]", "    b [\"B\"]", "A [\"A\"]", "  A [\"A\"]", "    a [\"A\"]"],
    );
}

#[test]
fn skipped_levels_make_adjacent_layers() {
    check(
        "# A\n### B\nb\n#### C\nc\n##### D\nd",
        "A",
        &[
            "B [\"B\"]",
            "  b [\"B\"]",
            "    b [\"B\"]",
            "  C [\"B\", \"C\"]",
            "    c [\"B\", \"C\"]",
            "    d [\"B\", \"C\", \"D\"]",
        ],
    );
}

#[test]
fn headings_without_text_become_text() {
    check("# A", "A", &["A []", "  A []", "    # A []"]);
    check(
        "# A\n## B\n## C",
        "A",
        &["B [\"B\"]", "  B [\"B\"]", "    ## B [\"B\"]", "C [\"C\"]", "  C [\"C\"]", "    ## C [\"C\"]"],
    );
    check("# A\n\n#\n", "A", &["A []", "  A []", "    # A []"]);
    check("#", "#", &["# []", "  # []", "    # []"]);
}

#[test]
fn small_texts_have_one_node_for_each_layer() {
    check("x", "x", &["x []", "  x []", "    x []"]);
    check(" 🏔🌋 \n", "🏔🌋", &["🏔🌋 []", "  🏔🌋 []", "    🏔🌋 []"]);
    check(
        "e\u{301}\u{301}",
        "e\u{301}\u{301}",
        &["e\u{301}\u{301} []", "  e\u{301}\u{301} []", "    e\u{301}\u{301} []"],
    );
    check("***", "***", &["*** []", "  *** []", "    *** []"]);
    assert!(layered(" \n\t").chunks.is_empty());
    assert!(layered("").l2.is_empty());
}

#[test]
fn chinese_and_japanese_are_split_into_sentences() {
    let text = "木星有九十五颗卫星，其中最大的四颗由伽利略发现。木卫二的冰层下有海洋。".repeat(30);
    let chinese = layered(&format!("# 木星的卫星\n\n{text}"));
    assert_eq!(chinese.root.language, "zh");
    assert!(chinese.chunks.len() > 3 && chinese.chunks.iter().all(|chunk| chunk.text.ends_with('。')));
    assert!(chinese.root.keywords.iter().any(|word| word.contains("卫星")), "{:?}", chinese.root.keywords);
    let japanese = layered(
        "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所で泣いていた。",
    );
    assert_eq!(japanese.root.language, "ja");
    assert!(japanese.root.summary.ends_with('。'), "{}", japanese.root.summary);
}

#[test]
fn title_is_given_or_derived() {
    let parsed = |text: &str| Parsed { text: text.to_owned(), ..Parsed::default() };
    assert_eq!(checked(&parsed("First line\nsecond"), " Given ").root.title, "Given");
    assert_eq!(checked(&parsed("\n  First line \r\nsecond"), " ").root.title, "First line");
    assert_eq!(checked(&parsed(&"ä".repeat(130)), "").root.title, "ä".repeat(120));
    assert_eq!(checked(&parsed("2 * 3 * 4 [sic] a_b"), "").root.title, "2 * 3 * 4 [sic] a_b");
    let linked = "![logo](logo.png)\nPart of [the kit](https://kit.example) *now*.\nmore";
    assert_eq!(checked(&parsed(linked), "").root.title, "Part of the kit now.");
    assert_eq!(checked(&parsed("![logo](logo.png)"), "").root.title, "![logo](logo.png)");
}

#[test]
fn front_matter_alone_gives_title_and_text() {
    let layered = layered("---\ntitle: \"The entity\"\ndescription: A list of what it has.\n---\n");
    assert_eq!(
        (layered.root.title.as_str(), layered.root.summary.as_str()),
        ("The entity", "A list of what it has.")
    );
    assert_eq!(layered.chunks.len(), 1);
}

#[test]
fn furniture_is_in_no_chunk() {
    let text = "First page words.\nPage 1 of 2\nSecond page words.";
    let block = |words: &str, page, furniture| {
        let start = text.find(words).unwrap();
        Block { kind: BlockKind::Paragraph, range: start..start + words.len(), page: Some(page), furniture }
    };
    let blocks = vec![
        block("First page words.", 1, false),
        block("Page 1 of 2", 1, true),
        block("Second page words.", 2, false),
    ];
    let layered = checked(&Parsed { text: text.to_owned(), blocks, warnings: Vec::new() }, "");
    let texts: Vec<_> = layered.chunks.iter().map(|chunk| chunk.text.as_str()).collect();
    assert_eq!(texts, ["First page words.", "Second page words."]);
    assert_eq!(layered.chunks[1].pages, Some(PageSpan { start: 2, end: 2 }));
    assert_eq!(layered.l2[0].pages, Some(PageSpan { start: 1, end: 2 }));
}

#[test]
fn long_text_without_headings_is_split_by_topic() {
    let sentence = |words: [&str; 4], n: usize| {
        format!(
            "The {} of the {} shows how a {} becomes a {} in case {n}. ",
            words[0], words[1], words[2], words[3]
        )
    };
    let topic = |words| (0..45).map(|n| sentence(words, n)).collect::<String>();
    let text = [
        topic(["eruption", "volcano", "crater", "lava field"]),
        topic(["sonata", "violin", "melody", "symphony"]),
        topic(["court", "judge", "contract", "verdict"]),
    ];
    let layered = layered(&text.join("\n\n"));
    let starts: Vec<_> = layered.l2.iter().map(|node| node.span.start as usize).collect();
    let changes = [0, text[0].len() + 2, text[0].len() + text[1].len() + 4];
    assert_eq!(starts, changes);
    assert!(layered.l3.len() > layered.l2.len());
}

#[test]
fn long_text_without_spaces_is_cut_between_words() {
    let check = |part: &dyn Fn(usize) -> String| {
        for lead in 0..40 {
            layered(&("x!".repeat(lead) + &(100..400).map(part).collect::<String>()));
        }
    };
    check(&|n| format!("\u{17b4}{n},{n}["));
    check(&|n| format!("part_{n}/"));
    check(&|n| format!("V.{n};"));
    check(&|n| format!("word{n}"));
}

/// A chunk is shown whole with each result that it is, so its length must have an end.
#[test]
fn white_space_and_marks_do_not_make_a_chunk_of_any_length() {
    for gap in ["\n", " ", "\u{3000}", "\u{301}", " \u{301}"].map(|gap| gap.repeat(1 << 20)) {
        let layered = layered(&format!("The quokka lives here.{gap}It is a marsupial. {gap} And so on."));
        let longest = layered.chunks.iter().map(|chunk| chunk.text.len()).max().unwrap();
        assert!(longest <= 128 << 10, "{longest}");
    }
    // Where there is no long gap, nothing is cut.
    let near = layered(&format!("The quokka lives here.{}It is a marsupial.", "\n".repeat(200)));
    assert_eq!(near.chunks.len(), 1);
}
