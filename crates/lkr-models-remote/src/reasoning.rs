//! Removes the reasoning that some models write before their answer, between `<think>` and `</think>`.

const BEGIN: &str = "<think>";
const END: &str = "</think>";

/// Removes reasoning at the beginning of a streamed answer.
#[derive(Debug, Default)]
pub(crate) struct ReasoningFilter {
    state: FilterState,
    /// Text that is not yet known to be part of the answer.
    buffer: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum FilterState {
    #[default]
    Beginning,
    Reasoning,
    /// The reasoning has ended, and the answer has not begun.
    BeforeAnswer,
    Answer,
}

impl ReasoningFilter {
    /// Adds the next part and returns the text of the answer in it.
    pub(crate) fn push(&mut self, text: &str) -> String {
        if self.state == FilterState::Answer {
            return text.to_owned();
        }
        self.buffer.push_str(text);
        if self.state == FilterState::Beginning {
            let beginning = self.buffer.trim_start();
            if let Some(reasoning) = beginning.strip_prefix(BEGIN) {
                self.buffer = reasoning.to_owned();
                self.state = FilterState::Reasoning;
            } else if !BEGIN.starts_with(beginning) {
                return self.begin_answer();
            }
        }
        if self.state == FilterState::Reasoning
            && let Some((_, answer)) = self.buffer.split_once(END)
        {
            self.buffer = answer.to_owned();
            self.state = FilterState::BeforeAnswer;
        }
        if self.state == FilterState::BeforeAnswer && !self.buffer.trim_start().is_empty() {
            self.buffer = self.buffer.trim_start().to_owned();
            return self.begin_answer();
        }
        String::new()
    }

    /// The remaining text at the end of the stream.
    pub(crate) fn finish(&mut self) -> String {
        if self.state == FilterState::Beginning { self.begin_answer() } else { String::new() }
    }

    fn begin_answer(&mut self) -> String {
        self.state = FilterState::Answer;
        std::mem::take(&mut self.buffer)
    }
}

/// A complete answer without its reasoning.
pub(crate) fn strip_reasoning(text: &str) -> String {
    let mut filter = ReasoningFilter::default();
    let answer = filter.push(text);
    answer + &filter.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_reasoning_at_the_beginning_is_removed() {
        let check = |text: &str, answer: &str| assert_eq!(strip_reasoning(text), answer, "{text}");
        check("<think>Hm, <b> or c?</think>\n\nIt is c.", "It is c.");
        check("\n<think></think>yes", "yes");
        check("It is <think>c</think>.", "It is <think>c</think>.");
        check("<think>for ever", "");
        check(" <thi", " <thi");
        check("", "");
    }

    proptest! {
        #[test]
        fn streamed_and_complete_answers_are_filtered_equally(
            text in "( |\n)?(<think>)?(a|<|/think>|</think>|b ){0,8}", cuts in prop::collection::vec(1_usize..5, 0..30),
        ) {
            let (mut filter, mut answer, mut rest) = (ReasoningFilter::default(), String::new(), text.as_str());
            for cut in cuts {
                let (part, remaining) = rest.split_at(cut.min(rest.len()));
                answer.push_str(&filter.push(part));
                rest = remaining;
            }
            answer.push_str(&filter.push(rest));
            answer.push_str(&filter.finish());
            prop_assert_eq!(answer, strip_reasoning(&text));
        }
    }
}
