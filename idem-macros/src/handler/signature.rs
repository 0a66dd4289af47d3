//! The function as it was written: attributes and signature parsed, the body left as tokens.
//!
//! The body is the user's: it is never parsed, so it costs nothing and works while someone types.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, TokenStreamExt, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, FnArg, GenericArgument, Ident, Pat, PatIdent, PatType, Path, PathArguments,
    ReturnType, Signature, Token, Type, TypeReference, Visibility, token,
};

use super::placement::first_span;
use crate::fallback;

/// A function or method.
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    /// `None` in `fn name(…);`.
    pub(crate) body: Option<Body>,
}

pub(crate) struct Body {
    /// `#![…]`: they belong to the function, so they stay at its start.
    pub(crate) inner_attrs: Vec<Attribute>,
    /// The braces and what they hold, with the spans that the user knows.
    pub(crate) block: Group,
}

/// A parameter other than the receiver.
pub(crate) struct Parameter<'a> {
    /// Its place in the signature.
    pub(crate) at: usize,
    pub(crate) pat: &'a Pat,
    pub(crate) ty: &'a Type,
    attrs: &'a [Attribute],
}

/// How a parameter holds the intent or the message id.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `&Intent`
    Borrowed,
    /// `Intent`
    Owned,
    /// `Option<&Intent>`
    OptionalBorrowed,
    /// `Option<Intent>`
    OptionalOwned,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        Ok(Self {
            attrs: input.call(Attribute::parse_outer)?,
            vis: input.parse()?,
            sig: input.parse()?,
            body: Body::parse(input)?,
        })
    }
}

impl Body {
    fn parse(input: ParseStream<'_>) -> syn::Result<Option<Self>> {
        if input.parse::<Option<Token![;]>>()?.is_some() {
            return Ok(None);
        }
        let content;
        let braces = syn::braced!(content in input);
        let inner_attrs = content.call(Attribute::parse_inner)?;
        let mut block = Group::new(Delimiter::Brace, content.parse()?);
        block.set_span(braces.span.join());
        Ok(Some(Self { inner_attrs, block }))
    }

    /// Whether the body says `name` anywhere, also inside of macro calls.
    pub(crate) fn names(&self, name: &Ident) -> bool {
        names(&self.block, name)
    }
}

impl Function {
    pub(crate) fn parameters(&self) -> Vec<Parameter<'_>> {
        let typed = self
            .sig
            .inputs
            .iter()
            .enumerate()
            .filter_map(|(at, input)| match input {
                FnArg::Receiver(_) => None,
                FnArg::Typed(PatType { attrs, pat, ty, .. }) => {
                    Some(Parameter { at, pat, ty, attrs })
                }
            });
        typed.collect()
    }

    /// The declared return type, if there is one.
    pub(crate) fn output(&self) -> Option<&Type> {
        match &self.sig.output {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => Some(ty),
        }
    }
}

/// As written, without our attributes on parameters. The parameters count as used, because the guard would have used them.
impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.append_all(
            self.attrs
                .iter()
                .filter(|attribute| !fallback::is_guard(attribute)),
        );
        self.vis.to_tokens(tokens);
        fallback::without_own_attributes(&self.sig).to_tokens(tokens);
        let Some(Body { inner_attrs, block }) = &self.body else {
            return token::Semi::default().to_tokens(tokens);
        };
        let parameters = self.parameters();
        let used = parameters
            .iter()
            .filter(|parameter| parameter.cfg().is_empty())
            .filter_map(|parameter| match parameter.pat {
                Pat::Ident(binding) => Some(&binding.ident),
                _ => None,
            })
            .filter(|ident| !ident.to_string().starts_with('_'));
        let (braces, statements) = (block.span(), block.stream());
        let mut block = Group::new(
            Delimiter::Brace,
            quote_spanned!(Span::mixed_site()=> #(#inner_attrs)* #(let _ = &#used;)* #statements),
        );
        block.set_span(braces);
        tokens.append(block);
    }
}

impl<'a> Parameter<'a> {
    /// Our attributes on this parameter, such as `#[idempotent(…)]`.
    pub(crate) fn own_attributes(&self) -> impl Iterator<Item = &'a Attribute> {
        self.attrs
            .iter()
            .filter(|attribute| fallback::is_own(attribute))
    }

    pub(crate) fn cfg(&self) -> Vec<&'a Attribute> {
        self.attrs
            .iter()
            .filter(|attribute| attribute.path().is_ident("cfg"))
            .collect()
    }

    /// The pattern when it is a plain name, such as `cmd` or `mut cmd`.
    pub(crate) fn binding(&self) -> Option<&'a PatIdent> {
        match self.pat {
            Pat::Ident(binding) if binding.by_ref.is_none() && binding.subpat.is_none() => {
                Some(binding)
            }
            _ => None,
        }
    }

    /// Where the pattern begins.
    pub(crate) fn start(&self) -> Span {
        first_span(&self.pat)
    }

    pub(crate) fn is_named(&self, name: &Ident) -> bool {
        self.binding().is_some_and(|binding| binding.ident == *name)
    }

    /// The `C` of `&mut C`.
    pub(crate) fn exclusive(&self) -> Option<&'a Type> {
        match bare(self.ty) {
            Type::Reference(TypeReference {
                mutability: Some(_),
                elem,
                ..
            }) => Some(elem),
            _ => None,
        }
    }

    /// Whether the type is one of the four forms of an intent, under any path.
    pub(crate) fn is_intent(&self) -> bool {
        self.holds("Intent")
    }

    /// Whether the type is one of the four forms of a message id, under any path.
    pub(crate) fn is_message_id(&self) -> bool {
        self.holds("MessageId")
    }

    fn holds(&self, wanted: &str) -> bool {
        let inner = optional(self.ty).unwrap_or(self.ty);
        last_segment(referent(inner)).is_some_and(|name| name == wanted)
    }

    pub(crate) fn form(&self) -> Form {
        let borrowed = |ty| matches!(bare(ty), Type::Reference(_));
        match optional(self.ty) {
            Some(inner) if borrowed(inner) => Form::OptionalBorrowed,
            Some(_) => Form::OptionalOwned,
            None if borrowed(self.ty) => Form::Borrowed,
            None => Form::Owned,
        }
    }
}

/// Whether `tokens` say `name`, at any depth.
pub(crate) fn names(tokens: &impl ToTokens, name: &Ident) -> bool {
    any_ident(tokens.to_token_stream(), &|ident| {
        ident.unraw() == name.unraw()
    })
}

/// Whether `tokens` hold an identifier that satisfies `wanted`, at any depth.
pub(crate) fn any_ident(tokens: TokenStream, wanted: &dyn Fn(&Ident) -> bool) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => wanted(&ident),
        TokenTree::Group(group) => any_ident(group.stream(), wanted),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// `impl` anywhere in a type.
pub(crate) fn is_opaque(ty: &Type) -> bool {
    any_ident(ty.to_token_stream(), &|ident| ident == "impl")
}

/// `Pin<Box<dyn Future<…>>>`, as `#[async_trait]` writes it, and the names that `futures` has for it.
pub(crate) fn is_boxed_future(ty: &Type) -> bool {
    let contains = |word: &str| any_ident(ty.to_token_stream(), &|ident| ident == word);
    match last_segment(bare(ty)) {
        Some(name) if name == "Pin" => contains("dyn") && contains("Future"),
        Some(name) => name == "BoxFuture" || name == "LocalBoxFuture",
        None => false,
    }
}

pub(crate) fn last_segment(ty: &Type) -> Option<&Ident> {
    match bare(ty) {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}

/// The first identifier of a path; `None` for a path that starts at the root.
pub(crate) fn head(path: &Path) -> Option<&Ident> {
    match path.leading_colon {
        Some(_) => None,
        None => path.segments.first().map(|segment| &segment.ident),
    }
}

/// A path without its last segment: the type of a variant. `None` when nothing is left.
pub(crate) fn without_last_segment(path: &Path) -> Option<Path> {
    let mut owner = path.clone();
    owner.segments.pop()?;
    owner.segments.pop_punct();
    (!owner.segments.is_empty()).then_some(owner)
}

/// The `T` of `Option<T>`.
fn optional(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = bare(ty) else {
        return None;
    };
    let segment = path
        .path
        .segments
        .last()
        .filter(|segment| segment.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) => Some(inner),
        _ => None,
    }
}

fn referent(ty: &Type) -> &Type {
    match bare(ty) {
        Type::Reference(reference) => bare(&reference.elem),
        other => other,
    }
}

/// The type without parentheses and without the invisible delimiters of `macro_rules`.
fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        _ => ty,
    }
}
