//! Every shape of `#[derive(RequestHash)]`, without a warning and without a prelude.

#![no_implicit_prelude]
#![forbid(unsafe_code)]
#![deny(warnings, clippy::pedantic)]

use ::idem_diesel::request_hash::Encoder;
use ::idem_diesel::{RequestDigest, RequestHash};
use ::std::boxed::Box;
use ::std::convert::From;
use ::std::option::Option::{self, None, Some};
use ::std::string::String;
use ::std::vec::Vec;
use ::std::{assert, assert_eq, assert_ne, vec};

#[derive(RequestHash)]
struct Named<'a> {
    text: &'a str,
    r#type: u8,
    #[request_hash(skip)]
    trace: String,
    #[request_hash(rename = "note", default)]
    remark: String,
    #[request_hash(default = limit)]
    limit: u32,
    #[request_hash(with = encoder)]
    email: String,
    #[request_hash(with = encoder, default)]
    alias: String,
    #[deprecated]
    old: Option<u8>,
}

fn limit() -> u32 {
    50
}

/// Named like a variable of the expansion, and takes the `str` of a `String`.
fn encoder(text: &str, encoder: &mut Encoder) {
    RequestHash::encode(text.trim(), encoder);
}

#[derive(RequestHash)]
struct Newtype(i64);

#[derive(RequestHash)]
struct NewtypeWith(#[request_hash(with = encoder)] String);

#[derive(RequestHash)]
struct Tuple(i64, #[request_hash(with = encoder)] String, #[request_hash(skip)] u8);

#[derive(RequestHash)]
struct EmptyTuple();

#[derive(RequestHash)]
struct Empty {}

#[derive(RequestHash)]
struct Unit;

#[derive(RequestHash)]
struct Unsized {
    length: u8,
    tail: [u16],
}

#[derive(RequestHash)]
enum Shapes<'a, T> {
    Unit,
    Newtype(T),
    Tuple(u8, &'a str),
    EmptyTuple(),
    Empty {},
    Struct {
        r#type: Option<T>,
        #[request_hash(skip)]
        _trace: u8,
        #[request_hash(with = encoder)]
        encoder: String,
        #[request_hash(default)]
        count: u8,
    },
    #[request_hash(rename = "Skipped")]
    OnlySkipped {
        #[request_hash(skip)]
        _trace: u8,
    },
}

#[derive(RequestHash)]
enum Never {}

#[derive(RequestHash)]
struct Node<T> {
    value: T,
    next: Option<Box<Node<T>>>,
}

#[derive(RequestHash)]
struct Generic<T, I, const N: usize>
where
    I: ::std::iter::Iterator,
{
    ids: [T; N],
    items: Vec<I::Item>,
    qualified: Vec<<I as ::std::iter::Iterator>::Item>,
    #[request_hash(default)]
    more: Vec<T>,
    marker: ::std::marker::PhantomData<I>,
    #[request_hash(skip)]
    _iterator: I,
}

macro_rules! declare {
    ($name:ident, $field:ident: $type:ty) => {
        #[derive(RequestHash)]
        struct $name {
            $field: $type,
            other: u8,
        }
    };
}

declare!(Declared, number: Option<u8>);

mod renamed {
    pub(crate) use ::idem_diesel as library;

    #[derive(library::RequestHash)]
    #[request_hash(crate = library)]
    pub(crate) struct Renamed {
        pub(crate) id: u8,
    }
}

fn hex<T: RequestHash + ?::std::marker::Sized>(value: &T) -> String {
    match RequestDigest::of(value) {
        ::std::result::Result::Ok(digest) => digest.to_hex(),
        ::std::result::Result::Err(error) => ::std::panic!("{error}"),
    }
}

#[expect(deprecated, reason = "a deprecated field is hashed without a warning")]
fn named(trace: &str) -> Named<'_> {
    Named {
        text: "tea",
        r#type: 1,
        trace: String::from(trace),
        remark: String::new(),
        limit: 50,
        email: String::from(" ada "),
        alias: String::new(),
        old: None,
    }
}

fn main() {
    let plain: [(&str, &dyn RequestHash); 3] = [("text", &"tea"), ("type", &1), ("email", &"ada")];
    let plain = RequestDigest::of_fields(&plain);
    assert_eq!(RequestDigest::of(&named("a")), plain);
    assert_eq!(RequestDigest::of(&named("b")), plain);
    assert!(!named("a").trace.is_empty());

    assert_eq!(hex(&Newtype(1)), hex(&1));
    assert_eq!(hex(&NewtypeWith(String::from(" a"))), hex("a"));
    assert_eq!(hex(&Tuple(1, String::from("a "), 9)), hex(&(1, "a")));
    assert_eq!(Tuple(1, String::new(), 9).2, 9);
    assert_eq!(hex(&Unit), hex(&Empty {}));
    assert_ne!(hex(&Unit), hex(&EmptyTuple()));
    let sized: Option<&Unsized> = None;
    assert_eq!(hex(&sized), hex(&None::<Never>));

    let shapes: [Shapes<'_, u8>; 8] = [
        Shapes::Unit,
        Shapes::Newtype(1),
        Shapes::Tuple(1, "a"),
        Shapes::EmptyTuple(),
        Shapes::Empty {},
        Shapes::Struct { r#type: None, _trace: 1, encoder: String::from("a"), count: 0 },
        Shapes::Struct { r#type: Some(1), _trace: 1, encoder: String::from("a"), count: 0 },
        Shapes::OnlySkipped { _trace: 1 },
    ];
    let distinct: ::std::collections::HashSet<String> = ::std::iter::Iterator::collect(
        ::std::iter::Iterator::map(shapes.iter(), hex),
    );
    assert_eq!(distinct.len(), shapes.len());

    let list = Node { value: 1, next: Some(Box::new(Node { value: 2, next: None })) };
    assert_ne!(hex(&list), hex(&Node { value: 1, next: None }));
    let generic = Generic {
        ids: [1],
        items: vec![1],
        qualified: vec![2],
        more: vec![],
        marker: ::std::marker::PhantomData,
        _iterator: 0..9_u8,
    };
    assert_eq!(hex(&generic), hex(&Generic { _iterator: 3..4, ..generic }));
    assert_ne!(hex(&Declared { number: None, other: 1 }), hex(&Declared { number: Some(1), other: 1 }));
    assert_ne!(hex(&renamed::Renamed { id: 1 }), hex(&1));
}
