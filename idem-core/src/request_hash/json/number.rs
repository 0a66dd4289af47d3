//! Decimal numbers by their exact value, however they are spelled.

use super::MAX_NUMBER_EXPONENT;
use crate::request_hash::RequestHash;
use crate::request_hash::encode::{Encoder, Sign, Tag};

pub(super) const OUT_OF_BOUNDS: &str = "has a number that is too large or too close to zero";

/// A decimal number as it is spelled: `whole.fraction` times ten to the power of `exponent`, digits in ASCII.
pub(in crate::request_hash) struct Number<'d> {
    pub(in crate::request_hash) sign: Sign,
    pub(in crate::request_hash) whole: &'d [u8],
    pub(in crate::request_hash) fraction: &'d [u8],
    pub(in crate::request_hash) exponent: i64,
}

impl Number<'_> {
    /// Writes the number by its value, in the one form without zeros at either end.
    pub(super) fn write(&self, encoder: &mut Encoder) -> Result<(), &'static str> {
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
