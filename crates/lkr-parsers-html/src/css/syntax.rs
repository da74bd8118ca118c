//! Parses style sheets and declarations with `cssparser` and writes them in a normal form: escapes resolved, comments
//! replaced by spaces, strings and URLs emptied.

use cssparser::{
    AtRuleParser, CowRcStr, DeclarationParser, ParseError, Parser, ParserState, QualifiedRuleParser,
    RuleBodyItemParser, RuleBodyParser, StyleSheetParser, Token,
};

type Parsed<T> = Result<T, ParseError<()>>;

/// Groups of rules (`@media` and the like) nested deeper than this are skipped. Judgement: real sheets nest two or three.
const MAX_GROUP_DEPTH: usize = 16;

/// The declarations of a rule or a `style` attribute, in the order of the source.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    /// Names in lower case, and normalized values.
    pub(super) items: Vec<(String, String)>,
    pub(crate) has_nested_rules: bool,
}

/// A rule of a style sheet.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) selectors: String,
    pub(crate) declarations: Declarations,
    /// Whether the rule is inside a group such as `@media`, so that it may not apply.
    pub(crate) is_conditional: bool,
}

/// The rules of a style sheet.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) rules: Vec<Rule>,
    pub(crate) has_imports: bool,
    pub(crate) has_keyframes: bool,
    depth: usize,
}

impl Rules {
    pub(crate) fn parse(css: &str) -> Self {
        let mut rules = Self::default();
        rules.parse_all(&mut Parser::new(css));
        rules
    }

    fn parse_all(&mut self, input: &mut Parser<'_>) {
        // Invalid rules are skipped, as browsers do.
        StyleSheetParser::new(input, self).for_each(drop);
    }
}

impl<'i> QualifiedRuleParser<'i> for Rules {
    type Prelude = String;
    type QualifiedRule = ();
    type Error = ();

    fn parse_prelude(&mut self, input: &mut Parser<'i>) -> Parsed<String> {
        Ok(normalized(input))
    }

    fn parse_block(&mut self, selectors: String, _: &ParserState, input: &mut Parser<'i>) -> Parsed<()> {
        let (declarations, is_conditional) = (Declarations::parse_body(input), self.depth > 0);
        self.rules.push(Rule { selectors, declarations, is_conditional });
        Ok(())
    }
}

impl<'i> AtRuleParser<'i> for Rules {
    /// Whether the rules in its block are read.
    type Prelude = bool;
    type AtRule = ();
    type Error = ();

    fn parse_prelude(&mut self, name: CowRcStr<'i>, input: &mut Parser<'i>) -> Parsed<bool> {
        let name = name.to_ascii_lowercase();
        let condition = normalized(input).to_ascii_lowercase();
        let is_group = matches!(name.as_str(), "media" | "supports" | "layer" | "container");
        let is_for_print = name == "media" && condition.contains("print") && !condition.contains(',');
        self.has_imports |= name == "import";
        self.has_keyframes |= name.ends_with("keyframes");
        Ok(is_group && !is_for_print && self.depth < MAX_GROUP_DEPTH)
    }

    fn rule_without_block(&mut self, _: bool, _: &ParserState) -> Result<(), ()> {
        Ok(())
    }

    fn parse_block(&mut self, is_read: bool, _: &ParserState, input: &mut Parser<'i>) -> Parsed<()> {
        if is_read {
            self.depth += 1;
            self.parse_all(input);
            self.depth -= 1;
        }
        Ok(())
    }
}

impl Declarations {
    pub(crate) fn parse(css: &str) -> Self {
        Self::parse_body(&mut Parser::new(css))
    }

    fn parse_body(input: &mut Parser<'_>) -> Self {
        let mut declarations = Self::default();
        // Invalid declarations are skipped, as browsers do.
        RuleBodyParser::new(input, &mut declarations).for_each(drop);
        declarations
    }
}

impl RuleBodyItemParser<'_, (), ()> for Declarations {
    fn parse_declarations(&self) -> bool {
        true
    }

    fn parse_qualified(&self) -> bool {
        true
    }
}

impl<'i> DeclarationParser<'i> for Declarations {
    type Declaration = ();
    type Error = ();

    fn parse_value(&mut self, name: CowRcStr<'i>, input: &mut Parser<'i>, _: &ParserState) -> Parsed<()> {
        let value = normalized(input);
        if value.contains('{') {
            // A nested rule such as `a:hover { … }`; the caller parses it as one.
            return Err(ParseError::custom(()));
        }
        self.items.push((name.to_ascii_lowercase(), value));
        Ok(())
    }
}

impl<'i> QualifiedRuleParser<'i> for Declarations {
    type Prelude = ();
    type QualifiedRule = ();
    type Error = ();

    fn parse_prelude(&mut self, input: &mut Parser<'i>) -> Parsed<()> {
        skip(input);
        Ok(())
    }

    fn parse_block(&mut self, (): (), _: &ParserState, _: &mut Parser<'i>) -> Parsed<()> {
        self.has_nested_rules = true;
        Ok(())
    }
}

impl<'i> AtRuleParser<'i> for Declarations {
    type Prelude = ();
    type AtRule = ();
    type Error = ();

    fn parse_prelude(&mut self, _: CowRcStr<'i>, input: &mut Parser<'i>) -> Parsed<()> {
        skip(input);
        Ok(())
    }

    fn parse_block(&mut self, (): (), _: &ParserState, _: &mut Parser<'i>) -> Parsed<()> {
        self.has_nested_rules = true;
        Ok(())
    }
}

fn skip(input: &mut Parser<'_>) {
    while input.next().is_ok() {}
}

/// The tokens up to the end of the input, as text in normal form.
fn normalized(input: &mut Parser<'_>) -> String {
    let mut text = String::new();
    push_tokens(input, &mut text);
    text
}

fn push_tokens(input: &mut Parser<'_>, text: &mut String) {
    loop {
        let start = input.position();
        let Ok(token) = input.next_including_whitespace_and_comments().cloned() else { return };
        let end = push_token(&token, input.slice_from(start), text);
        if let Some(end) = end {
            // Blocks nested deeper than the parser's limit are read as if they were flat.
            let _: Parsed<()> = input.parse_nested_block(|input| {
                push_tokens(input, text);
                Ok(())
            });
            text.push(end);
        }
    }
}

/// Adds a token; returns the bracket that closes it, if it opens a block.
fn push_token(token: &Token<'_>, source: &str, text: &mut String) -> Option<char> {
    match token {
        Token::WhiteSpace(_) | Token::Comment(_) | Token::CDO | Token::CDC => push(text, " "),
        Token::QuotedString(_) => push(text, "\"\""),
        Token::UnquotedUrl(_) => push(text, "url()"),
        Token::Ident(name) => push_name(text, "", name),
        Token::AtKeyword(name) => push_name(text, "@", name),
        Token::Hash(name) | Token::IDHash(name) => push_name(text, "#", name),
        // The parsed number, because the unit may contain escapes.
        Token::Dimension { value, unit, .. } => push_name(text, &value.to_string(), unit),
        Token::BadUrl(_) | Token::BadString(_) => push(text, "\u{fffd}"),
        Token::Function(name) => {
            push_name(text, "", name);
            push_bracket(text, '(', ')')
        }
        Token::ParenthesisBlock => push_bracket(text, '(', ')'),
        Token::SquareBracketBlock => push_bracket(text, '[', ']'),
        Token::CurlyBracketBlock => push_bracket(text, '{', '}'),
        _ => push(text, source),
    }
}

fn push(text: &mut String, part: &str) -> Option<char> {
    text.push_str(part);
    None
}

fn push_bracket(text: &mut String, start: char, end: char) -> Option<char> {
    text.push(start);
    Some(end)
}

/// Adds a name. Characters that need an escape become U+FFFD, so that they have no meaning in CSS.
fn push_name(text: &mut String, prefix: &str, name: &str) -> Option<char> {
    let is_plain = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    text.push_str(prefix);
    text.extend(name.chars().map(|c| if is_plain(c) { c } else { char::REPLACEMENT_CHARACTER }));
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_with_escapes_comments_and_strings_are_normalized() {
        for (css, expected) in [
            ("d\\69splay:none", "display:none"),
            ("d\\000069 splay:none", "display:none"),
            ("display:/**/none/* open", "display: none "),
            ("dis/**/play:none", ""),
            ("content:'}\\'}';a:b", "content:\"\"|a:b"),
            ("a:url(data:a;b{c);d:url( 'x;' )", "a:url()|d:url( \"\" )"),
            ("WIDTH:-.5E1px ;height:50%", "width:-5px |height:50%"),
            ("a:'open\nb;c:d", "a:\u{fffd}\nb|c:d"),
            ("a:b{c};d:e", "d:e"),
        ] {
            let items = Declarations::parse(css).items;
            let found: Vec<String> = items.iter().map(|(name, value)| format!("{name}:{value}")).collect();
            assert_eq!(found.join("|").replace('\n', " "), expected.replace('\n', " "), "{css}");
        }
    }

    #[test]
    fn rules_in_groups_are_conditional() {
        let css = "@import 'a';<!-- .a,.b{x:y} --> @media screen{.c{x:y}}@media print{.d{x:y}}@keyframes z{to{x:y}}.e{x:y";
        let found = Rules::parse(css);
        let rules: Vec<_> =
            found.rules.iter().map(|rule| (rule.selectors.trim(), rule.is_conditional)).collect();
        assert_eq!(rules, [(".a,.b", false), (".c", true), (".e", false)]);
        assert!(found.has_imports && found.has_keyframes);
    }
}
