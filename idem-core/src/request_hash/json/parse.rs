//! Reads JSON (RFC 8259) from the front to the back and writes it into the encoder as it goes.

use super::number::Number;
use super::{MAX_JSON_DEPTH, TOO_DEEP};
use crate::request_hash::encode::{Encoder, Keys, Sign, Tag};
use crate::request_hash::{HashError, RequestHash};

const NOT_JSON: &str = "is not valid JSON";

pub(super) fn write_text(text: &[u8], encoder: &mut Encoder) -> Result<(), HashError> {
    let text = str::from_utf8(text)
        .map_err(|error| HashError::in_json("is not UTF-8", error.valid_up_to()))?;
    let mut parser = Parser { text, at: 0 };
    parser.value(encoder, MAX_JSON_DEPTH)?;
    parser.skip_white_space();
    match parser.peek() {
        None => Ok(()),
        Some(_) => Err(parser.error("has something after its JSON value")),
    }
}

/// Reads JSON from the front to the back, without going back and without a copy.
struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn value(&mut self, encoder: &mut Encoder, depth_left: usize) -> Result<(), HashError> {
        self.skip_white_space();
        match self.peek() {
            Some(b'{') => self.object(encoder, depth_left),
            Some(b'[') => self.array(encoder, depth_left),
            Some(b'"') => self.string(encoder),
            Some(b'-' | b'0'..=b'9') => self.number(encoder),
            Some(b'n') => self.literal("null").map(|()| encoder.nothing(0)),
            Some(b't') => self.literal("true").map(|()| true.encode(encoder)),
            Some(b'f') => self.literal("false").map(|()| false.encode(encoder)),
            _ => Err(self.error(NOT_JSON)),
        }
    }

    fn object(&mut self, encoder: &mut Encoder, depth_left: usize) -> Result<(), HashError> {
        let brace = self.at;
        let depth_left = self.enter(depth_left)?;
        let start = encoder.open(Tag::Map);
        let mut more = !self.ends_at_once(b'}');
        while more {
            self.skip_white_space();
            self.string(encoder)?;
            self.skip_white_space();
            self.expect(b':')?;
            self.value(encoder, depth_left)?;
            more = self.comma_or(b'}')?;
        }
        match encoder.close_sorted(start, 2) {
            Keys::Distinct => Ok(()),
            Keys::Repeated => Err(HashError::in_json("has two members of one name", brace)),
        }
    }

    fn array(&mut self, encoder: &mut Encoder, depth_left: usize) -> Result<(), HashError> {
        let depth_left = self.enter(depth_left)?;
        let start = encoder.open(Tag::Sequence);
        let mut more = !self.ends_at_once(b']');
        while more {
            self.value(encoder, depth_left)?;
            more = self.comma_or(b']')?;
        }
        encoder.close(start);
        Ok(())
    }

    fn enter(&mut self, depth_left: usize) -> Result<usize, HashError> {
        let inside = depth_left
            .checked_sub(1)
            .ok_or_else(|| self.error(TOO_DEEP))?;
        self.at += 1;
        Ok(inside)
    }

    fn ends_at_once(&mut self, end: u8) -> bool {
        self.skip_white_space();
        self.take(end)
    }

    /// After a member or an element: whether another one follows.
    fn comma_or(&mut self, end: u8) -> Result<bool, HashError> {
        self.skip_white_space();
        if self.take(b',') {
            return Ok(true);
        }
        self.expect(end).map(|()| false)
    }

    fn string(&mut self, encoder: &mut Encoder) -> Result<(), HashError> {
        self.expect(b'"')?;
        let start = encoder.open(Tag::Text);
        loop {
            let plain = self.take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20));
            encoder.push(plain);
            if self.take(b'"') {
                encoder.close(start);
                return Ok(());
            }
            if !self.take(b'\\') {
                return Err(self.error("has a string without end or with a control character"));
            }
            let character = self.escaped()?;
            encoder.push(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// What stands after a backslash.
    fn escaped(&mut self) -> Result<char, HashError> {
        let escape = self.peek().ok_or_else(|| self.error(NOT_JSON))?;
        self.at += 1;
        Ok(match escape {
            b'"' | b'\\' | b'/' => char::from(escape),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => {
                self.at -= 1;
                return Err(self.error("has an unknown escape in a string"));
            }
        })
    }

    /// One UTF-16 unit, or two when the first one is the high half of a pair.
    fn unicode_escape(&mut self) -> Result<char, HashError> {
        let first = self.utf_16_unit()?;
        let second = match first {
            0xd800..0xdc00 if self.take(b'\\') && self.take(b'u') => Some(self.utf_16_unit()?),
            _ => None,
        };
        let mut characters = char::decode_utf16([first].into_iter().chain(second));
        match (characters.next(), characters.next()) {
            (Some(Ok(character)), None) => Ok(character),
            _ => Err(self.error("has a lone surrogate in a string")),
        }
    }

    fn utf_16_unit(&mut self) -> Result<u16, HashError> {
        let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
        // `from_str_radix` alone would take a sign, too.
        match u16::from_str_radix(digits, 16) {
            Ok(unit) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
                self.at += 4;
                Ok(unit)
            }
            _ => Err(self.error("has an escape without four hexadecimal digits")),
        }
    }

    fn number(&mut self, encoder: &mut Encoder) -> Result<(), HashError> {
        let start = self.at;
        let number = self.scan_number()?;
        number
            .write(encoder)
            .map_err(|problem| HashError::in_json(problem, start))
    }

    fn scan_number(&mut self) -> Result<Number<'t>, HashError> {
        let sign = if self.take(b'-') {
            Sign::Minus
        } else {
            Sign::Plus
        };
        let whole = self.digits()?;
        if whole.len() > 1 && whole.first() == Some(&b'0') {
            return Err(self.error("has a number with a leading zero"));
        }
        let fraction = if self.take(b'.') { self.digits()? } else { &[] };
        let exponent = if self.take(b'e') || self.take(b'E') {
            let negative = self.take(b'-');
            if !negative {
                self.take(b'+');
            }
            let digits = self.digits()?;
            // Far outside the bounds it does not matter how far, so the sum may stop growing.
            let magnitude = digits.iter().fold(0_i64, |sum, digit| {
                sum.saturating_mul(10)
                    .saturating_add(i64::from(digit - b'0'))
            });
            if negative { -magnitude } else { magnitude }
        } else {
            0
        };
        Ok(Number {
            sign,
            whole,
            fraction,
            exponent,
        })
    }

    /// One digit or more.
    fn digits(&mut self) -> Result<&'t [u8], HashError> {
        match self.take_while(|byte| byte.is_ascii_digit()) {
            [] => Err(self.error("has a number without digits")),
            digits => Ok(digits),
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), HashError> {
        if !self.rest().starts_with(word.as_bytes()) {
            return Err(self.error(NOT_JSON));
        }
        self.at += word.len();
        Ok(())
    }

    fn skip_white_space(&mut self) {
        self.take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    }

    fn expect(&mut self, byte: u8) -> Result<(), HashError> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.error(NOT_JSON))
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let taken = self.peek() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'t [u8] {
        let rest = self.rest();
        let length = rest
            .iter()
            .position(|byte| !belongs(*byte))
            .unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn error(&self, problem: &'static str) -> HashError {
        HashError::in_json(problem, self.at)
    }
}
