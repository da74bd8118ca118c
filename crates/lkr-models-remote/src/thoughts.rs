//! Some models write what they think before what they say, between tags.

const BEGIN: &str = "<think>";
const END: &str = "</think>";

/// Takes the thoughts off an answer that comes in parts, where it begins with them.
#[derive(Debug, Default)]
pub(crate) struct Thoughts {
    state: State,
    /// What came and cannot be told yet.
    held: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Beginning,
    Thinking,
    /// Thoughts are over, and what follows them is not said yet.
    Between,
    Saying,
}

impl Thoughts {
    /// Takes what an answer goes on with, and answers what is said of it.
    pub(crate) fn push(&mut self, text: &str) -> String {
        if self.state == State::Saying {
            return text.to_owned();
        }
        self.held.push_str(text);
        if self.state == State::Beginning {
            let begun = self.held.trim_start();
            if let Some(thought) = begun.strip_prefix(BEGIN) {
                self.held = thought.to_owned();
                self.state = State::Thinking;
            } else if !BEGIN.starts_with(begun) {
                return self.say();
            }
        }
        if self.state == State::Thinking
            && let Some((_, said)) = self.held.split_once(END)
        {
            self.held = said.to_owned();
            self.state = State::Between;
        }
        if self.state == State::Between && !self.held.trim_start().is_empty() {
            self.held = self.held.trim_start().to_owned();
            return self.say();
        }
        String::new()
    }

    /// What is left of an answer that has ended.
    pub(crate) fn rest(&mut self) -> String {
        if self.state == State::Beginning { self.say() } else { String::new() }
    }

    fn say(&mut self) -> String {
        self.state = State::Saying;
        std::mem::take(&mut self.held)
    }
}

/// What a whole answer says.
pub(crate) fn without_thoughts(text: &str) -> String {
    let mut thoughts = Thoughts::default();
    let said = thoughts.push(text);
    said + &thoughts.rest()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn thoughts_come_before_what_is_said() {
        let check = |text: &str, said: &str| assert_eq!(without_thoughts(text), said, "{text}");
        check("<think>Hm, <b> or c?</think>\n\nIt is c.", "It is c.");
        check("\n<think></think>yes", "yes");
        check("It is <think>c</think>.", "It is <think>c</think>.");
        check("<think>for ever", "");
        check(" <thi", " <thi");
        check("", "");
    }

    proptest! {
        #[test]
        fn parts_say_what_the_whole_says(
            text in "( |\n)?(<think>)?(a|<|/think>|</think>|b ){0,8}", cuts in prop::collection::vec(1_usize..5, 0..30),
        ) {
            let (mut thoughts, mut said, mut rest) = (Thoughts::default(), String::new(), text.as_str());
            for cut in cuts {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                said.push_str(&thoughts.push(now));
                rest = later;
            }
            said.push_str(&thoughts.push(rest));
            said.push_str(&thoughts.rest());
            prop_assert_eq!(said, without_thoughts(&text));
        }
    }
}
