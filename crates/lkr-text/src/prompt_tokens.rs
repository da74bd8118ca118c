//! An estimate of the tokens that a text takes in a prompt.

mod piece;
mod vocabulary;

use piece::pieces;
use vocabulary::{MAX_TOKEN_BYTES, prefix_hashes};

/// An estimate of the number of tokens of `text` in the vocabulary o200k_base.
///
/// It is meant not to be too low: it is a few per cent above the exact count. The estimates of lines with their line breaks
/// are together at least that of the lines joined. See docs/studies.md#prompt-tokens.
#[must_use]
pub fn prompt_tokens(text: &str) -> usize {
    let lines = text.split_inclusive('\n').enumerate();
    let hundredths: u64 = lines.map(|(index, line)| line_cost(line, index > 0)).sum();
    usize::try_from(hundredths.div_ceil(100)).unwrap_or(usize::MAX)
}

/// The cost of an empty line after another line, in hundredths of a token: consecutive line breaks are one token, as long as
/// they are not very many.
const EMPTY_LINE_COST: u64 = 10;

/// The cost of a line and its line break in hundredths of a token.
fn line_cost(line: &str, follows_a_line: bool) -> u64 {
    if follows_a_line && matches!(line, "\n" | "\r\n") {
        return EMPTY_LINE_COST;
    }
    pieces(line).map(cost).sum()
}

/// What a piece costs beyond its number of tokens, in hundredths of a token: the tokenizer merges pairs, which does not
/// always find the longest tokens.
const PIECE_MARGIN: u64 = 2;
/// The same for each token of a piece but the first, in ASCII and in other pieces. The latter are long where a script has no
/// spaces.
const SPLIT_MARGIN: (u64, u64) = (40, 20);

/// The cost of a piece in hundredths of a token.
fn cost(piece: &str) -> u64 {
    let mut rest = piece;
    let mut tokens = 0_u64;
    while let Some(first) = rest.chars().next() {
        // A character that is not in the vocabulary takes at most a token for each of its bytes.
        let (length, count) = longest_token(rest).map_or((first.len_utf8(), first.len_utf8()), |it| (it, 1));
        tokens += count as u64;
        rest = rest.get(length..).unwrap_or_default();
    }
    let margin = if piece.is_ascii() { SPLIT_MARGIN.0 } else { SPLIT_MARGIN.1 };
    100 * tokens + PIECE_MARGIN + margin * tokens.saturating_sub(1)
}

/// The length of the longest token at the start of `rest`, in bytes.
fn longest_token(rest: &str) -> Option<usize> {
    let hashes = prefix_hashes(rest.as_bytes()).take(MAX_TOKEN_BYTES).zip(1..);
    let on_boundary = hashes.filter(|&(_, length)| rest.is_char_boundary(length));
    on_boundary.filter(|&(hash, _)| vocabulary::contains(hash)).map(|(_, length)| length).last()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn prompt_tokens_of_small_texts() {
        let check = |text: &str, expected: usize| assert_eq!(prompt_tokens(text), expected, "{text}");
        check("", 0);
        check(" ", 2);
        check("the moon", 3);
        check("of the ice", 4);
        check("1234567", 4);
        check("moon\n", 3);
        check("moon\n\n\n", 3);
        assert!((4..8).contains(&prompt_tokens("東京タワー")));
    }

    /// The lines of a shared collection, joined to texts of different lengths.
    fn texts_of(collection: &str) -> Option<Vec<String>> {
        let folder = lkr_test_support::real_data(&format!("data/{collection}"))?;
        let documents = folder.join("docs.jsonl");
        let file = if documents.exists() { documents } else { folder.join("corpus.jsonl") };
        let rows = fs::read_to_string(file).unwrap();
        let text =
            |row: &str| serde_json::from_str::<Value>(row).unwrap()["text"].as_str().map(str::to_owned);
        let whole: String = rows.lines().filter_map(text).collect::<Vec<_>>().join("\n");
        let lines: Vec<&str> = whole.lines().collect();
        let chunks = [3, 10, 40].into_iter().flat_map(|count| lines.chunks(count));
        Some(chunks.map(|chunk| chunk.join("\n")).collect())
    }

    #[test]
    fn estimate_is_not_below_the_exact_count_on_the_shared_collections() {
        let tokenizer = bpe_openai::o200k_base();
        let collections = [
            ("gitlab_handbook", 1.08),
            ("product_docs", 1.06),
            ("chroma_chunking", 1.06),
            ("scifact", 1.08),
            ("xquad_en", 1.06),
            ("xquad_zh", 1.25),
            ("cmrc2018", 1.25),
            ("jaquad_dev", 1.25),
        ];
        for (name, most) in collections {
            let Some(texts) = texts_of(name) else { return };
            let (mut exact_sum, mut estimate_sum) = (0, 0);
            for text in texts {
                let (exact, estimate) = (tokenizer.count(&text), prompt_tokens(&text));
                // A single short line may be an enumeration of rare abbreviations.
                assert!(estimate >= exact || exact < 50, "{name}: {estimate} for {exact} tokens of {text}");
                (exact_sum, estimate_sum) = (exact_sum + exact, estimate_sum + estimate);
            }
            let ratio = estimate_sum as f64 / exact_sum as f64;
            eprintln!("{name}: {ratio:.3} of the exact count");
            assert!(
                (1.0..most).contains(&ratio),
                "{name}: {ratio:.3} of the exact count, at most {most} expected"
            );
        }
    }

    proptest! {
        #[test]
        fn estimates_of_lines_are_together_at_least_that_of_the_text(lines in prop::collection::vec("\\PC{0,60}", 0..8)) {
            let text = lines.join("\n");
            let sum: usize = text.split_inclusive('\n').map(prompt_tokens).sum();
            prop_assert!(prompt_tokens(&text) <= sum);
        }
    }
}
