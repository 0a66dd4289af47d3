//! Bytes as hexadecimal digits in lower case, without the formatting machinery: every call writes some.

/// Appends the digits of `bytes`.
pub(crate) fn push(text: &mut String, bytes: &[u8]) {
    text.reserve(2 * bytes.len());
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            // A half byte always has a digit.
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_byte_has_two_digits() {
        let mut text = "x".to_owned();
        super::push(&mut text, &[0, 9, 0x0a, 0xa0, 0xff]);
        assert_eq!(text, "x00090aa0ff");
    }
}
