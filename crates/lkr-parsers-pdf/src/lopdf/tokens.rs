//! The operations of a content stream with the bytes where they stand. What cannot be read is passed over byte by byte,
//! as viewers do, so that what follows it is read all the same.

mod parts;

use std::ops::Range;

use lopdf::{Object, StringFormat};
use parts::{digit, is_blank, is_regular, number, paired};

/// Arrays and dictionaries inside each other beyond this are passed over.
const MAX_DEPTH: usize = 16;

/// Of one operation's operands, so many are kept: the last ones.
const MAX_OPERANDS: usize = 64;

/// Items of an array beyond this many are not kept.
const MAX_ITEMS: usize = 100_000;

/// So many bytes behind the end of a picture have to be text for it to be its end.
const AFTER_PICTURE: usize = 10;

/// One operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation<'c> {
    pub(super) operator: &'c str,
    pub(super) operands: &'c [Object],
    /// Where its first operand begins in the content.
    pub(super) start: usize,
    /// Where its operator ends.
    pub(super) end: usize,
}

impl Operation<'_> {
    /// The bytes that it consists of.
    pub(super) const fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// A content stream while its operations are read.
#[derive(Debug)]
pub(super) struct Tokens<'c> {
    content: &'c [u8],
    at: usize,
    operands: Vec<Object>,
    /// Up to here brackets are passed over, as one that stands before does not end.
    broken: usize,
}

impl<'c> Tokens<'c> {
    pub(super) const fn new(content: &'c [u8]) -> Self {
        Self { content, at: 0, operands: Vec::new(), broken: 0 }
    }

    /// The next operation; none at the end, or where a string or a picture does not end.
    pub(super) fn next(&mut self) -> Option<Operation<'_>> {
        self.operands.clear();
        let mut start = None;
        loop {
            self.skip_blanks();
            let begin = self.at;
            match self.token(0)? {
                Token::Operand(operand) => {
                    start = start.or(Some(begin));
                    if self.operands.len() == MAX_OPERANDS {
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
                    // No operator has other characters than those of ASCII.
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
            // These operators need nothing behind them.
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

    /// What stands in parentheses, behind the first of which this is; nothing where it does not end.
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

    /// What a backslash, behind which this is, makes of the bytes that follow.
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

    /// An array or a dictionary up to its end. Where that does not come before an operator, its bracket is passed over:
    /// what it holds is read as if it stood alone.
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
                // A reference has no meaning in a content stream.
                Some(Token::Operand(_) | Token::Stray | Token::Word(b"R")) => {}
                Some(Token::Word(_)) | None => {
                    self.broken = self.broken.max(self.at);
                    self.at = begin;
                    return Token::Stray;
                }
            }
        }
    }

    /// Passes over a picture in the content, behind whose `BI` this is; nothing where it does not end.
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

/// What a content stream consists of.
enum Token<'c> {
    Operand(Object),
    Word(&'c [u8]),
    /// A delimiter without meaning.
    Stray,
}

#[cfg(test)]
mod tests;
