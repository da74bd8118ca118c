//! What has to hold, over arbitrary and over real texts.

#[path = "support/common.rs"]
mod common;

use common::{checked, layered, titled};
use lkr_domain::{Block, BlockKind, Parsed};
use lkr_layers::{LayerOptions, layer};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn layers_of_arbitrary_text_are_consistent(text in "\\PC{0,400}|(\\PC|[\n\r\t ]){0,200}") {
        layered(&text);
    }

    #[test]
    fn layers_of_arbitrary_markup_are_consistent(
        lines in prop::collection::vec(
            prop_oneof![
                "#{1,6} [a-zäß ]{0,12}", "#{1,3}", "={3}", "-{3}", "[a-zA-Z ,.]{0,300}", "- [a-z ]{1,40}", "\\| [a-z]{1,5} \\| b \\|",
                "```", "> [a-z]{1,9}", "", "[一-龥。]{0,300}", "[\u{300}-\u{30f}🏔👍🏽a]{1,400}", "[A-Z0-9_.]{300,700}",
            ],
            0..30,
        ),
        title in prop_oneof![Just(""), Just("a"), Just("notes")],
    ) {
        titled(&lines.join("\n"), title);
    }

    #[test]
    fn layers_of_arbitrary_blocks_are_consistent(
        text in "[a-c \n.é東]{0,120}",
        blocks in prop::collection::vec((0_usize..130, 0_usize..40, 0_u8..5, any::<bool>(), 1_u32..4), 0..8),
    ) {
        let block = |(start, length, kind, furniture, page): (usize, usize, u8, bool, u32)| Block {
            kind: match kind {
                0 => BlockKind::Heading { level: 1 + length as u8 % 4, title: "ab".repeat(length % 3) },
                1 => BlockKind::List,
                2 => BlockKind::Table,
                3 => BlockKind::Code,
                _ => BlockKind::Paragraph,
            },
            range: start..start + length,
            page: Some(page),
            furniture,
        };
        let blocks = blocks.into_iter().map(block).collect();
        // Blocks that break the port's contract do no harm.
        let layered = layer(&Parsed { text: text.clone(), blocks, warnings: Vec::new() }, "", &LayerOptions::default());
        for chunk in &layered.chunks {
            let cut: String = text.chars().skip(chunk.span.start as usize).take(chunk.span.len() as usize).collect();
            prop_assert_eq!(&cut, &chunk.text);
        }
        prop_assert_eq!(layered.chunks.is_empty(), text.trim().is_empty());
    }

    #[test]
    fn layers_of_text_with_long_gaps_are_consistent(
        parts in prop::collection::vec(
            (prop_oneof!["[a-z]{1,9}[.]?", "- [a-z]{1,5}", "\u{301}{1,9}", "a\u{301}{1,2000}", "```", "\\| [a-z] \\|"],
             prop_oneof![Just(' '), Just('\n'), Just('\t'), Just('\u{a0}'), Just('\u{3000}')], 1_usize..60_000),
            1..24,
        ),
    ) {
        let text: String = parts.iter().map(|(part, space, gap)| format!("{part}{}", space.to_string().repeat(*gap))).collect();
        layered(&text);
    }

    #[test]
    fn equal_input_gives_equal_layers(text in "([a-zA-Z]{1,8}[ .\n#]{1,2}){0,200}") {
        prop_assert_eq!(layered(&text), layered(&text));
    }
}

#[test]
fn layers_of_real_documents_are_consistent() {
    for (name, key) in [
        ("gitlab_handbook/docs.jsonl", "text"),
        ("chroma_chunking/docs.jsonl", "text"),
        ("cmrc2018/corpus.jsonl", "text"),
    ] {
        let Some(path) = lkr_test_support::real_data(&format!("data/{name}")) else { continue };
        let documents = std::fs::read_to_string(path).unwrap();
        for line in documents.lines().take(300).step_by(3) {
            let document: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = document[key].as_str().unwrap();
            layered(text);
            titled(text, "notes");
        }
    }
}

#[test]
fn large_texts_take_linear_time() {
    let prose: String = (0..60_000)
        .map(|n| format!("Sentence {n} tells of thing {} and its {}. ", n % 977, n % 31))
        .collect();
    let headings: String = (0..20_000).map(|n| format!("## Part {n}\n\nWords of part {n}.\n\n")).collect();
    for text in [
        prose,
        headings,
        "a\n\n".repeat(300_000),
        "東".repeat(300_000),
        "|a|\n".repeat(300_000),
        " ".repeat(3_000_000) + "x",
    ] {
        let parsed = lkr_parsers::Parser::parse(&lkr_parsers::Markdown, &text.as_str().into()).unwrap();
        let layered = layer(&parsed, "", &LayerOptions::default());
        assert!(!layered.chunks.is_empty());
    }
    checked(&Parsed { text: "word ".repeat(100_000), ..Parsed::default() }, "");
}
