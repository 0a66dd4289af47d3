//! A function that has passed the rules for every kind of handler.

use proc_macro2::{Group, TokenStream};
use syn::{Attribute, Expr, Ident, Pat, Path, Signature, Token, Type, Visibility};

use super::signature::Form;

pub(crate) struct Handler {
    pub(crate) krate: TokenStream,
    pub(crate) transition: Option<Transition>,

    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    /// As it is emitted: our attributes are gone, the patterns in [`Request::pattern`] are names.
    pub(crate) sig: Signature,
    pub(crate) output: Type,
    pub(crate) inner_attrs: Vec<Attribute>,
    pub(crate) block: Group,

    pub(crate) connection: Connection,
    pub(crate) requests: Vec<Request>,
}

pub(crate) struct Transition {
    /// The enum, as `OrderStatus` in `OrderStatus::Paid`.
    pub(crate) machine: Path,
    pub(crate) from: Vec<Path>,
    pub(crate) to: Path,
    pub(crate) id: Expr,
}

pub(crate) struct Connection {
    /// The name in the signature.
    pub(crate) name: Ident,
    /// The `C` of `&mut C`.
    pub(crate) ty: Type,
    pub(crate) visible: Option<Visible>,
}

pub(crate) struct Intent {
    /// The name in the signature.
    pub(crate) name: Ident,
    pub(crate) form: Form,
    pub(crate) visible: Option<Visible>,
}

/// What the body calls its connection or intent; absent where it calls it nothing.
pub(crate) struct Visible {
    pub(crate) mutability: Option<Token![mut]>,
    pub(crate) name: Ident,
}

/// A parameter that the hash covers.
pub(crate) struct Request {
    /// What the hash calls it.
    pub(crate) label: String,
    /// The variable that holds it.
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    pub(crate) cfg: Vec<Attribute>,
    /// What was written in place of `name`; bound after the hash was taken.
    pub(crate) pattern: Option<Pat>,
}
