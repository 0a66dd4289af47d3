//! How the types that a command holds are written.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::marker::PhantomData;
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::RequestHash;
use super::encode::{Encoder, Sign, Tag};

macro_rules! transparent {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => {$(
        impl<$($generics)*> RequestHash for $type {
            fn encode(&self, encoder: &mut Encoder) {
                T::encode(self, encoder);
            }
        }
    )*};
}

transparent!(
    [T: RequestHash + ?Sized] &T,
    [T: RequestHash + ?Sized] &mut T,
    [T: RequestHash + ?Sized] Box<T>,
    [T: RequestHash + ?Sized] Rc<T>,
    [T: RequestHash + ?Sized] Arc<T>,
    [T: RequestHash + ToOwned + ?Sized] Cow<'_, T>,
);

macro_rules! unsigned {
    ($($type:ty),*) => {$(
        impl RequestHash for $type {
            fn encode(&self, encoder: &mut Encoder) {
                encoder.integer(Tag::Integer, Sign::Plus, widened(*self));
            }
        }
    )*};
}

unsigned!(u16, u32, u64, u128, usize);

macro_rules! signed {
    ($($type:ty),*) => {$(
        impl RequestHash for $type {
            fn encode(&self, encoder: &mut Encoder) {
                let sign = if *self < 0 { Sign::Minus } else { Sign::Plus };
                encoder.integer(Tag::Integer, sign, widened(self.unsigned_abs()));
            }
        }
    )*};
}

signed!(i8, i16, i32, i64, i128, isize);

impl RequestHash for u8 {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.integer(Tag::Integer, Sign::Plus, u128::from(*self));
    }

    fn encode_elements<'e>(elements: impl Iterator<Item = &'e Self>, encoder: &mut Encoder) {
        encoder.byte_string(elements);
    }
}

macro_rules! non_zero {
    ($($type:ty),*) => {$(
        impl RequestHash for NonZero<$type> {
            fn encode(&self, encoder: &mut Encoder) {
                self.get().encode(encoder);
            }
        }
    )*};
}

non_zero!(
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize
);

impl RequestHash for bool {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.leaf(Tag::Bool, [&[u8::from(*self)]]);
    }
}

impl RequestHash for f64 {
    fn encode(&self, encoder: &mut Encoder) {
        if self.is_nan() {
            encoder.refuse("is not a number");
        } else if self.is_infinite() {
            encoder.refuse("is infinite");
        }
        // Adding zero turns `-0.0`, which equals `0.0`, into it and leaves every other number alone.
        encoder.leaf(Tag::Float, [&(self + 0.0).to_be_bytes()]);
    }
}

impl RequestHash for f32 {
    fn encode(&self, encoder: &mut Encoder) {
        f64::from(*self).encode(encoder);
    }
}

impl RequestHash for str {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.text(self);
    }
}

impl RequestHash for String {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.text(self);
    }
}

impl RequestHash for char {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.text(self.encode_utf8(&mut [0; 4]));
    }
}

impl<T: RequestHash> RequestHash for Option<T> {
    fn encode(&self, encoder: &mut Encoder) {
        match self {
            None => encoder.nothing(0),
            Some(value) => encoder.some(value),
        }
    }
}

/// It holds nothing, so as a named field it adds nothing.
impl<T: ?Sized> RequestHash for PhantomData<T> {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.nothing(0);
    }
}

impl<T: RequestHash> RequestHash for [T] {
    fn encode(&self, encoder: &mut Encoder) {
        T::encode_elements(self.iter(), encoder);
    }
}

impl<T: RequestHash, const N: usize> RequestHash for [T; N] {
    fn encode(&self, encoder: &mut Encoder) {
        T::encode_elements(self.iter(), encoder);
    }
}

impl<T: RequestHash> RequestHash for Vec<T> {
    fn encode(&self, encoder: &mut Encoder) {
        T::encode_elements(self.iter(), encoder);
    }
}

impl<T: RequestHash> RequestHash for VecDeque<T> {
    fn encode(&self, encoder: &mut Encoder) {
        T::encode_elements(self.iter(), encoder);
    }
}

impl<T: RequestHash, S> RequestHash for HashSet<T, S> {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.set(self);
    }
}

impl<T: RequestHash> RequestHash for BTreeSet<T> {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.set(self);
    }
}

impl<K: RequestHash, V: RequestHash, S> RequestHash for HashMap<K, V, S> {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.map(self);
    }
}

impl<K: RequestHash, V: RequestHash> RequestHash for BTreeMap<K, V> {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.map(self);
    }
}

impl RequestHash for () {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.tuple(|_| {});
    }
}

macro_rules! tuples {
    ($($($type:ident)+;)*) => {$(
        impl<$($type: RequestHash),+> RequestHash for ($($type,)+) {
            fn encode(&self, encoder: &mut Encoder) {
                #[allow(non_snake_case, reason = "each element is named like its type")]
                let ($($type,)+) = self;
                encoder.tuple(|elements| {
                    $(elements.element($type);)+
                });
            }
        }
    )*};
}

tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
    A B C D E F G H I;
    A B C D E F G H I J;
    A B C D E F G H I J K;
    A B C D E F G H I J K L;
}

impl RequestHash for Duration {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.integer(Tag::Duration, Sign::Plus, self.as_nanos());
    }
}

#[cfg(feature = "chrono")]
mod chrono_types {
    use chrono::{
        DateTime, Datelike as _, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone,
        Timelike as _,
    };

    use super::{Encoder, RequestHash, Sign, Tag};

    const NANOS_PER_SECOND: u128 = 1_000_000_000;

    /// Two texts of one moment, in different offsets, are the same instant.
    impl<Tz: TimeZone> RequestHash for DateTime<Tz> {
        fn encode(&self, encoder: &mut Encoder) {
            seconds_and_nanos(Tag::Instant, &self.to_utc(), encoder);
        }
    }

    impl RequestHash for NaiveDateTime {
        fn encode(&self, encoder: &mut Encoder) {
            seconds_and_nanos(Tag::DateTime, &self.and_utc(), encoder);
        }
    }

    impl RequestHash for NaiveDate {
        fn encode(&self, encoder: &mut Encoder) {
            encoder.leaf(Tag::Date, [&self.num_days_from_ce().to_be_bytes()]);
        }
    }

    impl RequestHash for NaiveTime {
        fn encode(&self, encoder: &mut Encoder) {
            let seconds = self.num_seconds_from_midnight().to_be_bytes();
            encoder.leaf(Tag::Time, [&seconds, &self.nanosecond().to_be_bytes()]);
        }
    }

    /// A positive one equals the `Duration` of the same length.
    impl RequestHash for TimeDelta {
        fn encode(&self, encoder: &mut Encoder) {
            let sign = if *self < Self::zero() {
                Sign::Minus
            } else {
                Sign::Plus
            };
            // Seconds and nanoseconds have the same sign, so the parts can be added without it.
            let seconds = u128::from(self.num_seconds().unsigned_abs());
            let nanos = u128::from(self.subsec_nanos().unsigned_abs());
            encoder.integer(Tag::Duration, sign, seconds * NANOS_PER_SECOND + nanos);
        }
    }

    /// Apart, because in a leap second chrono counts the nanoseconds beyond one second.
    fn seconds_and_nanos(tag: Tag, instant: &DateTime<chrono::Utc>, encoder: &mut Encoder) {
        let seconds = instant.timestamp().to_be_bytes();
        encoder.leaf(
            tag,
            [&seconds, &instant.timestamp_subsec_nanos().to_be_bytes()],
        );
    }
}

#[cfg(feature = "uuid")]
impl RequestHash for uuid::Uuid {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.leaf(Tag::Uuid, [self.as_bytes()]);
    }
}

/// By value: `1.0` equals `1.00`, and the JSON number `1`.
#[cfg(feature = "rust_decimal")]
impl RequestHash for rust_decimal::Decimal {
    fn encode(&self, encoder: &mut Encoder) {
        let mantissa = self.mantissa();
        let digits = mantissa.unsigned_abs().to_string();
        let number = super::json::Number {
            sign: if mantissa < 0 {
                Sign::Minus
            } else {
                Sign::Plus
            },
            whole: digits.as_bytes(),
            fraction: &[],
            exponent: -i64::from(self.scale()),
        };
        number.encode(encoder);
    }
}

/// No integer is wider than 128 bits, so nothing is cut off; `u128: From<usize>` does not exist.
fn widened<T: TryInto<u128>>(integer: T) -> u128 {
    integer
        .try_into()
        .unwrap_or_else(|_| unreachable!("no integer is wider than 128 bits"))
}
