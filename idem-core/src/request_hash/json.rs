//! JSON by value, from its bytes or from a `serde_json::Value`.
//!
//! The parser writes straight into the encoder. What JSON leaves open, and two parties could
//! read in two ways, is refused: members of one name, lone surrogates, numbers out of all bounds.
//! It does not go through `serde_json`, whose features decide how numbers and the order of members are kept.

mod number;
mod parse;

use serde_json::{Map, Value};

use self::number::OUT_OF_BOUNDS;
use super::RequestHash;
use super::encode::{Encoder, Tag};

#[cfg(feature = "rust_decimal")]
pub(super) use self::number::Number;

const TOO_DEEP: &str = "is JSON that is nested too deep";

/// How deep arrays and objects may be nested; `serde_json` does not parse deeper ones either.
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
    if let Err(error) = parse::write_text(text.as_ref(), encoder) {
        encoder.fail(error);
    }
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
