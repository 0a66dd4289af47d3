//! JSON by value, from its bytes or from a `serde_json::Value`.
//!
//! The parser writes straight into the encoder and keeps to RFC 8259. What JSON leaves open, and two parties could
//! read in two ways, is refused: members of one name, lone surrogates, numbers out of all bounds.
//! It does not go through `serde_json`, whose features decide how numbers and the order of members are kept.

use serde_json::{Map, Value};

use super::encode::{Encoder, Keys, Sign, Tag};
use super::{HashError, RequestHash};

/// How deep arrays and objects may be nested; `serde_json` refuses to parse deeper ones, too.
///
/// ```
/// use idem_core::RequestDigest;
/// use idem_core::request_hash::{Json, MAX_JSON_DEPTH};
///
/// let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
/// assert!(RequestDigest::of(&Json(nested(MAX_JSON_DEPTH))).is_ok());
/// assert!(RequestDigest::of(&Json(nested(MAX_JSON_DEPTH + 1))).is_err());
/// ```
pub const MAX_JSON_DEPTH: usize = 128;

/// The largest power of ten, and the smallest with a minus, that the first digit of a number may stand for.
///
/// It is beyond what an `f64` can hold, and keeps `1e999999999` from meaning anything.
///
/// ```
/// use idem_core::RequestDigest;
/// use idem_core::request_hash::Json;
///
/// assert!(RequestDigest::of(&Json("9e1000")).is_ok());
/// assert!(RequestDigest::of(&Json("10e1000")).is_err());
/// ```
pub const MAX_NUMBER_EXPONENT: u16 = 1000;

/// A JSON text, hashed by its value.
///
/// White space, the order of members and the spelling of strings and numbers do not count: `1`, `1.0`, `1e0` and `10e-1`
/// are one number, compared by its exact decimal value, however many digits it has. Refused are duplicate members,
/// lone surrogates, text that is not UTF-8 or not JSON (RFC 8259), anything after the value,
/// nesting deeper than [`MAX_JSON_DEPTH`] and numbers beyond [`MAX_NUMBER_EXPONENT`].
///
/// ```
/// use idem_core::RequestDigest;
/// use idem_core::request_hash::Json;
///
/// let one = RequestDigest::of(&Json(br#"{"amount": 1, "to": "\u0041da"}"#))?;
/// let other = RequestDigest::of(&Json(br#"{"to":"Ada","amount":1.0}"#))?;
/// assert_eq!(one, other);
///
/// let error = RequestDigest::of(&Json(br#"{"amount": 1, "amount": 2}"#)).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "no request hash: the value has two members of one name (at byte 0 of the JSON text)",
/// );
/// # Ok::<(), idem_core::HashError>(())
/// ```
///
/// A `serde_json::Value` has the same hash as the text it was parsed from, as long as its numbers survive: it is
/// hashed with numbers as `serde_json` reads them without features, as `u64`, `i64` or the nearest `f64`, whose shortest
/// decimal form then counts. So `0.10000000000000000001` equals `0.1` as a `Value`, but not as text. The features
/// `arbitrary_precision` and `preserve_order` change nothing about the hash of either.
///
/// ```
/// use idem_core::RequestDigest;
/// use idem_core::request_hash::Json;
///
/// let text = r#"{"b": [1.50, null], "a": 1e2}"#;
/// let value: serde_json::Value = serde_json::from_str(text).expect("valid");
/// assert_eq!(RequestDigest::of(&value)?, RequestDigest::of(&Json(text))?);
/// # Ok::<(), idem_core::HashError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Json<B>(pub B);

impl<B: AsRef<[u8]>> RequestHash for Json<B> {
    fn encode(&self, encoder: &mut Encoder) {
        json(&self.0, encoder);
    }
}

/// Writes a JSON text by its value, for `#[request_hash(with = …)]` on a field that holds bytes or text; see [`Json`].
///
/// ```
/// use idem_core::{RequestDigest, RequestHash};
/// use idem_core::request_hash::json;
/// # use idem_macros::RequestHash;
///
/// #[derive(RequestHash)]
/// # #[request_hash(crate = idem_core)]
/// struct Received {
///     #[request_hash(with = json)]
///     body: Vec<u8>,
/// }
///
/// let [one, other] = ["[1, 2]", "[1,2.0]"].map(|body| RequestDigest::of(&Received { body: body.into() }));
/// assert_eq!(one?, other?);
/// # Ok::<(), idem_core::HashError>(())
/// ```
pub fn json<B: AsRef<[u8]> + ?Sized>(text: &B, encoder: &mut Encoder) {
    if let Err(error) = write_text(text.as_ref(), encoder) {
        encoder.fail(error);
    }
}

fn write_text(text: &[u8], encoder: &mut Encoder) -> Result<(), HashError> {
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

const NOT_JSON: &str = "is not valid JSON";
const TOO_DEEP: &str = "is JSON that is nested too deep";
const OUT_OF_BOUNDS: &str = "has a number that is too large or too close to zero";

/// A decimal number as it is spelled: `whole.fraction` times ten to the power of `exponent`, digits in ASCII.
pub(super) struct Number<'d> {
    pub(super) sign: Sign,
    pub(super) whole: &'d [u8],
    pub(super) fraction: &'d [u8],
    pub(super) exponent: i64,
}

impl Number<'_> {
    /// Writes the number by its value, in the one form without zeros at either end.
    fn write(&self, encoder: &mut Encoder) -> Result<(), &'static str> {
        let digits = self.whole.len() + self.fraction.len();
        let (whole, fraction) = match without_leading_zeros(self.whole) {
            [] => (&[][..], without_leading_zeros(self.fraction)),
            whole => (whole, self.fraction),
        };
        let leading_zeros = digits - whole.len() - fraction.len();
        let (whole, fraction) = match without_trailing_zeros(fraction) {
            [] => (without_trailing_zeros(whole), &[][..]),
            fraction => (whole, fraction),
        };
        let significant = whole.len() + fraction.len();
        if significant == 0 {
            encoder.leaf(Tag::Decimal, [&[Sign::Plus as u8], &0_i32.to_be_bytes()]);
            return Ok(());
        }
        let power_of_first = self
            .exponent
            .saturating_add(signed(self.whole.len()) - signed(leading_zeros) - 1);
        if power_of_first.unsigned_abs() > u64::from(MAX_NUMBER_EXPONENT) {
            return Err(OUT_OF_BOUNDS);
        }
        let power_of_last = power_of_first - signed(significant) + 1;
        let power_of_last = i32::try_from(power_of_last).map_err(|_| OUT_OF_BOUNDS)?;
        encoder.leaf(
            Tag::Decimal,
            [
                &[self.sign as u8],
                &power_of_last.to_be_bytes(),
                whole,
                fraction,
            ],
        );
        Ok(())
    }
}

impl RequestHash for Number<'_> {
    fn encode(&self, encoder: &mut Encoder) {
        if let Err(problem) = self.write(encoder) {
            encoder.refuse(problem);
        }
    }
}

/// No text is longer than `isize::MAX`.
fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

fn without_leading_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    digits.get(zeros..).unwrap_or_default()
}

fn without_trailing_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits
        .iter()
        .rev()
        .take_while(|digit| **digit == b'0')
        .count();
    digits.get(..digits.len() - zeros).unwrap_or_default()
}

/// Hashed like its text, with numbers as `u64`, `i64` or the nearest `f64`; see [`Json`].
impl RequestHash for Value {
    fn encode(&self, encoder: &mut Encoder) {
        write_value(self, encoder, MAX_JSON_DEPTH);
    }
}

/// Hashed like the `Value` that holds it.
impl RequestHash for Map<String, Value> {
    fn encode(&self, encoder: &mut Encoder) {
        write_members(self, encoder, MAX_JSON_DEPTH);
    }
}

fn write_value(value: &Value, encoder: &mut Encoder, depth_left: usize) {
    match value {
        Value::Null => encoder.nothing(0),
        Value::Bool(value) => value.encode(encoder),
        Value::Number(number) => write_value_number(number, encoder),
        Value::String(text) => encoder.text(text),
        Value::Array(_) | Value::Object(_) if depth_left == 0 => encoder.refuse(TOO_DEEP),
        Value::Array(elements) => {
            let start = encoder.open(Tag::Sequence);
            for element in elements {
                write_value(element, encoder, depth_left - 1);
            }
            encoder.close(start);
        }
        Value::Object(members) => write_members(members, encoder, depth_left),
    }
}

fn write_members(members: &Map<String, Value>, encoder: &mut Encoder, depth_left: usize) {
    let start = encoder.open(Tag::Map);
    for (name, member) in members {
        encoder.text(name);
        write_value(member, encoder, depth_left - 1);
    }
    encoder.close_sorted(start, 2);
}

/// With `arbitrary_precision` a number keeps its text; read as a float it has the hash that it has without.
fn write_value_number(number: &serde_json::Number, encoder: &mut Encoder) {
    let text = if let Some(integer) = number.as_u64() {
        integer.to_string()
    } else if let Some(integer) = number.as_i64() {
        integer.to_string()
    } else if let Some(float) = number.as_f64() {
        // The shortest digits that give this float back: the same ones that serde_json prints.
        format!("{float:e}")
    } else {
        return encoder.refuse(OUT_OF_BOUNDS);
    };
    json(&text, encoder);
}
