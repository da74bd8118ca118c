//! Reads the operations of a content stream with their byte ranges. Invalid bytes are skipped one by one, as viewers do,
//! so that the operations after them are read.

mod parts;

use std::ops::Range;

use lopdf::{Object, StringFormat};
use parts::{digit, is_blank, is_regular, number, paired};

/// Most levels of nested arrays and dictionaries.
const MAX_DEPTH: usize = 16;

/// Only the last operands of an operation are kept, up to this many.
const MAX_OPERANDS: usize = 64;

/// Most items of an array that are kept.
const MAX_ITEMS: usize = 100_000;

/// After the end of an inline image, this many bytes must be text.
const AFTER_PICTURE: usize = 10;

/// An operation: an operator with its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation<'c> {
    pub(super) operator: &'c str,
    pub(super) operands: &'c [Object],
    /// The offset of its first operand.
    pub(super) start: usize,
    /// The offset after its operator.
    pub(super) end: usize,
}

impl Operation<'_> {
    /// Its byte range.
    pub(super) const fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// An iterator over the operations of a content stream.
#[derive(Debug)]
pub(super) struct Tokens<'c> {
    content: &'c [u8],
    at: usize,
    operands: Vec<Object>,
    /// Most operands of an operation that are kept.
    max_operands: usize,
    /// Brackets before this offset are skipped, because an earlier one is not closed.
    broken: usize,
}

impl<'c> Tokens<'c> {
    pub(super) const fn new(content: &'c [u8]) -> Self {
        Self::with_max_operands(content, MAX_OPERANDS)
    }

    /// Keeps up to this many operands of an operation.
    pub(super) const fn with_max_operands(content: &'c [u8], max_operands: usize) -> Self {
        Self { content, at: 0, operands: Vec::new(), max_operands, broken: 0 }
    }

    /// The next operation; `None` at the end, or if a string or an inline image is not closed.
    pub(super) fn next(&mut self) -> Option<Operation<'_>> {
        self.operands.clear();
        let mut start = None;
        loop {
            self.skip_blanks();
            let begin = self.at;
            match self.token(0)? {
                Token::Operand(operand) => {
                    start = start.or(Some(begin));
                    if self.operands.len() == self.max_operands {
                        self.operands.remove(0);
                    }
                    self.operands.push(operand);
                }
                Token::Word(word) if word == b"BI" => {
                    self.skip_picture()?;
                    let start = start.unwrap_or(begin);
                    return Some(Operation { operator: "BI", operands: &self.operands, start, end: self.at });
                }
                Token::Word(word) => {
                    // Operators are ASCII.
                    let operator = str::from_utf8(word).unwrap_or_default();
                    let start = start.unwrap_or(begin);
                    return Some(Operation { operator, operands: &self.operands, start, end: self.at });
                }
                Token::Stray => {}
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.content.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while let Some(byte) = self.peek() {
            if byte == b'%' {
                self.skip_while(|byte| !matches!(byte, b'\r' | b'\n'));
            } else if is_blank(byte) {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    fn skip_while(&mut self, accepts: impl Fn(u8) -> bool) {
        let rest = self.content.get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|byte| !accepts(*byte)).unwrap_or(rest.len());
    }

    fn token(&mut self, depth: usize) -> Option<Token<'c>> {
        let byte = self.peek()?;
        let (begin, next) = (self.at, self.content.get(self.at + 1).copied());
        self.at += 1;
        Some(match byte {
            b'(' => Token::Operand(Object::String(self.literal()?, StringFormat::Literal)),
            b'/' => Token::Operand(Object::Name(self.name())),
            b'<' if next == Some(b'<') => {
                self.at += 1;
                self.nest(b">>", depth)
            }
            b'<' => Token::Operand(Object::String(self.hexadecimal()?, StringFormat::Hexadecimal)),
            b'[' => self.nest(b"]", depth),
            b')' | b']' | b'{' | b'}' | b'>' => Token::Stray,
            b'0'..=b'9' | b'+' | b'-' | b'.' => {
                self.skip_while(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.'));
                Token::Operand(number(self.since(begin)))
            }
            // These operators need no delimiter after them.
            b'\'' | b'"' => Token::Word(self.since(begin)),
            _ => {
                self.skip_while(|byte| is_regular(byte) && !matches!(byte, b'\'' | b'"'));
                match self.since(begin) {
                    b"true" => Token::Operand(Object::Boolean(true)),
                    b"false" => Token::Operand(Object::Boolean(false)),
                    b"null" => Token::Operand(Object::Null),
                    word => Token::Word(word),
                }
            }
        })
    }

    fn since(&self, begin: usize) -> &'c [u8] {
        self.content.get(begin..self.at).unwrap_or_default()
    }

    /// Reads a string after its opening parenthesis; `None` if it is not closed.
    fn literal(&mut self) -> Option<Vec<u8>> {
        let (mut bytes, mut depth) = (Vec::new(), 0_usize);
        loop {
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'\\' => self.escape(&mut bytes)?,
                b')' if depth == 0 => return Some(bytes),
                b')' => depth -= 1,
                b'(' => depth += 1,
                b'\r' => {
                    self.at += usize::from(self.peek() == Some(b'\n'));
                    bytes.push(b'\n');
                    continue;
                }
                _ => {}
            }
            if byte != b'\\' {
                bytes.push(byte);
            }
        }
    }

    /// Reads an escape sequence after its backslash.
    fn escape(&mut self, bytes: &mut Vec<u8>) -> Option<()> {
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'b' => bytes.push(8),
            b'f' => bytes.push(12),
            b'\r' => self.at += usize::from(self.peek() == Some(b'\n')),
            b'\n' => {}
            b'0'..=b'7' => {
                let mut code = byte - b'0';
                for _ in 0..2 {
                    let Some(digit @ b'0'..=b'7') = self.peek() else { break };
                    code = code.wrapping_mul(8).wrapping_add(digit - b'0');
                    self.at += 1;
                }
                bytes.push(code);
            }
            byte => bytes.push(byte),
        }
        Some(())
    }

    fn hexadecimal(&mut self) -> Option<Vec<u8>> {
        let begin = self.at;
        self.skip_while(|byte| byte != b'>');
        let digits: Vec<u8> = self.since(begin).iter().copied().filter_map(digit).collect();
        self.peek()?;
        self.at += 1;
        let pair = |pair: &[u8]| pair.iter().chain(&[0]).take(2).fold(0, |byte, digit| byte << 4 | digit);
        Some(digits.chunks(2).map(pair).collect())
    }

    fn name(&mut self) -> Vec<u8> {
        let begin = self.at;
        self.skip_while(is_regular);
        let mut rest = self.since(begin);
        let mut name = Vec::with_capacity(rest.len());
        while let Some((byte, after)) = rest.split_first() {
            let code = || Some(digit(*after.first()?)? << 4 | digit(*after.get(1)?)?);
            match code().filter(|_| *byte == b'#') {
                Some(code) => {
                    name.push(code);
                    rest = after.get(2..).unwrap_or_default();
                }
                None => {
                    name.push(*byte);
                    rest = after;
                }
            }
        }
        name
    }

    /// Reads an array or a dictionary. If it is not closed before an operator, its bracket is skipped and
    /// its items are read separately.
    fn nest(&mut self, end: &[u8], depth: usize) -> Token<'c> {
        let (begin, mut items) = (self.at, Vec::new());
        if begin <= self.broken || depth >= MAX_DEPTH {
            return Token::Stray;
        }
        loop {
            self.skip_blanks();
            if self.content.get(self.at..).unwrap_or_default().starts_with(end) {
                self.at += end.len();
                let is_array = end == b"]";
                return Token::Operand(if is_array { Object::Array(items) } else { paired(items).into() });
            }
            match self.token(depth + 1) {
                Some(Token::Operand(item)) if items.len() < MAX_ITEMS => items.push(item),
                // References are invalid in content streams.
                Some(Token::Operand(_) | Token::Stray | Token::Word(b"R")) => {}
                Some(Token::Word(_)) | None => {
                    self.broken = self.broken.max(self.at);
                    self.at = begin;
                    return Token::Stray;
                }
            }
        }
    }

    /// Skips an inline image after its `BI`; `None` if it is not closed.
    fn skip_picture(&mut self) -> Option<()> {
        loop {
            self.skip_blanks();
            match self.token(0)? {
                Token::Word(b"ID") => break,
                Token::Word(b"EI") => return Some(()),
                _ => {}
            }
        }
        let data = self.content.get(self.at..)?;
        let is_end = |at: usize| {
            let after = data.get(at + 3..).unwrap_or_default();
            let is_text = |byte: &u8| is_blank(*byte) || (b' '..=b'~').contains(byte);
            after.first().is_none_or(|byte| !is_regular(*byte))
                && after.iter().take(AFTER_PICTURE).all(is_text)
        };
        let ends = data.windows(3).enumerate().filter(|(_, part)| {
            part.split_first().is_some_and(|(first, rest)| is_blank(*first) && rest == b"EI")
        });
        let end = ends.map(|(at, _)| at).find(|at| is_end(*at))?;
        self.at += end + 3;
        Some(())
    }
}

/// A token of a content stream.
enum Token<'c> {
    Operand(Object),
    Word(&'c [u8]),
    /// An unexpected delimiter.
    Stray,
}

#[cfg(test)]
mod tests;
