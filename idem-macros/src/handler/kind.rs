//! Which attribute is expanded: its words, and what its errors call things.

use crate::words;

/// `#[idempotent]` or `#[consumer]`.
pub(crate) struct Kind {
    /// The name of the attribute.
    pub(crate) attribute: &'static str,
    /// The words on the function, in the order in which they are explained.
    pub(crate) known: &'static [&'static str],
    /// Words that are not known here, and that a rule of their own says more about.
    pub(crate) explained: &'static [&'static [&'static str]],

    /// "This function is … already."
    pub(crate) being: &'static str,
    /// "There is no body to make …"
    pub(crate) made: &'static str,
    /// "… function returns a `Result`."
    pub(crate) article: &'static str,
    /// Why the return type needs a name.
    pub(crate) returned: &'static str,
    /// The constant that the attribute writes.
    pub(crate) constant: &'static str,
    /// What the parameters without a role are.
    pub(crate) hashed: &'static str,
    /// The hash over them.
    pub(crate) hash: &'static str,
    /// The parameters that have a role.
    pub(crate) roles: &'static str,
}

impl Kind {
    /// How a word is written, with the attribute where it stands on a parameter.
    pub(crate) fn example(&self, word: &str) -> String {
        let example = words::example(word);
        if words::ON_PARAMETER.contains(&word) {
            format!("#[{}({example})]", self.attribute)
        } else {
            example.to_owned()
        }
    }
}
