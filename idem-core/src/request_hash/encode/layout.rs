//! How a value lies in the buffer: its kinds, its header, and how the values of a container are found again.

/// Tag and length in front of the content.
pub(super) const HEADER_BYTES: usize = 5;

/// The kind of a value. The numbers are part of the format: they are never changed or used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::request_hash) enum Tag {
    Nothing = 0,
    Bool = 1,
    Integer = 2,
    Float = 3,
    Decimal = 4,
    Text = 5,
    Bytes = 6,
    Sequence = 7,
    Tuple = 8,
    Struct = 9,
    Variant = 10,
    Map = 11,
    Set = 12,
    Duration = 13,
    #[cfg(feature = "chrono")]
    Instant = 14,
    #[cfg(feature = "chrono")]
    Date = 15,
    #[cfg(feature = "chrono")]
    Time = 16,
    #[cfg(feature = "chrono")]
    DateTime = 17,
    #[cfg(feature = "uuid")]
    Uuid = 18,
}

/// The sign of a number; zero is `Plus`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::request_hash) enum Sign {
    Plus = 0,
    Minus = 1,
}

/// Whether the keys of a container differ from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::request_hash) enum Keys {
    Distinct,
    Repeated,
}

/// One entry of an unordered container, as it was written.
pub(super) struct Entry<'b> {
    pub(super) key: &'b [u8],
    /// Key and value. No key is the beginning of another one, so this sorts like the key.
    pub(super) whole: &'b [u8],
}

/// Finds the entries of a container again.
pub(super) struct Entries<'b> {
    pub(super) rest: &'b [u8],
    pub(super) values_per_entry: usize,
}

impl<'b> Iterator for Entries<'b> {
    type Item = Entry<'b>;

    fn next(&mut self) -> Option<Entry<'b>> {
        let (key, mut rest) = split_value(self.rest)?;
        for _ in 1..self.values_per_entry {
            (_, rest) = split_value(rest)?;
        }
        let whole = self.rest.get(..self.rest.len() - rest.len())?;
        self.rest = rest;
        Some(Entry { key, whole })
    }
}

/// The first value, with its header, and what comes after it.
pub(super) fn split_value(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, after_tag) = bytes.split_first()?;
    let length = usize::try_from(u32::from_be_bytes(*after_tag.first_chunk()?)).ok()?;
    bytes.split_at_checked(length.checked_add(HEADER_BYTES)?)
}

pub(super) fn without_leading_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeros..).unwrap_or_default()
}
