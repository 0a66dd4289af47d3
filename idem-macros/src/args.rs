//! The words of an attribute as they were written: nothing is judged here.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::discouraged::Speculative as _;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, ExprLit, ExprPath, Ident, Lit, LitInt, LitStr, Path, Token, token};

/// A comma-separated list of words.
pub(crate) struct Args {
    pub(crate) words: Vec<Word>,
    /// What stood where a word should begin.
    pub(crate) strays: Vec<TokenStream>,
    /// Words that follow the one before them without a comma.
    pub(crate) unseparated: Vec<Ident>,
}

/// One word with what follows it.
pub(crate) struct Word {
    pub(crate) name: Ident,
    pub(crate) value: Value,
}

pub(crate) enum Value {
    /// `skip`
    Flag,
    /// `scope = "orders.pay"`
    Equals(Expr),
    /// `transition(…)`
    List(Group),
    /// Neither of them; empty where nothing follows the `=`.
    Unreadable(TokenStream),
}

impl Args {
    /// Reads every word. A word that cannot be read does not hide the next one.
    pub(crate) fn parse(tokens: TokenStream) -> Self {
        let words = |input: ParseStream<'_>| {
            let mut args = Self::none();
            while !input.is_empty() {
                if input.peek(Ident::peek_any) {
                    let name = input.call(Ident::parse_any)?;
                    let value = Value::parse(input)?;
                    args.words.push(Word { name, value });
                } else {
                    let stray = until_comma(input)?;
                    args.strays.extend((!stray.is_empty()).then_some(stray));
                }
                if input.parse::<Option<Token![,]>>()?.is_none() && !input.is_empty() {
                    args.unseparated.push(input.fork().call(Ident::parse_any)?);
                }
            }
            Ok(args)
        };
        // `words` only takes tokens that it has seen, so it has no errors of its own.
        words.parse2(tokens).unwrap_or_else(|error| Self {
            strays: vec![error.into_compile_error()],
            ..Self::none()
        })
    }

    pub(crate) fn none() -> Self {
        Self {
            words: Vec::new(),
            strays: Vec::new(),
            unseparated: Vec::new(),
        }
    }

    /// Adds the words of another attribute at the same place.
    pub(crate) fn append(&mut self, other: Self) {
        self.words.extend(other.words);
        self.strays.extend(other.strays);
        self.unseparated.extend(other.unseparated);
    }

    /// The first word of this name; a second one is refused by a rule of its own.
    pub(crate) fn find(&self, name: &str) -> Option<&Word> {
        self.words.iter().find(|word| word.name == name)
    }
}

impl Value {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if is_over(input) {
            return Ok(Self::Flag);
        }
        let ahead = input.fork();
        let value = if ahead.peek(token::Paren) {
            ahead.parse().map(|list| match list {
                TokenTree::Group(list) => Self::List(list),
                other => Self::Unreadable(other.into()),
            })
        } else {
            let equals = ahead.parse::<Token![=]>();
            equals.and_then(|_| ahead.parse()).map(Self::Equals)
        };
        if let Ok(value) = value
            && is_over(&ahead)
        {
            input.advance_to(&ahead);
            return Ok(value);
        }
        input.parse::<Option<Token![=]>>()?;
        Ok(Self::Unreadable(until_comma(input)?))
    }
}

/// Whether a word ends here: before a comma, or before another word.
fn is_over(input: ParseStream<'_>) -> bool {
    input.is_empty() || input.peek(Token![,]) || input.peek(Ident::peek_any)
}

impl Word {
    pub(crate) fn text(&self) -> Option<&LitStr> {
        match self.expression()? {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn number(&self) -> Option<&LitInt> {
        match self.expression()? {
            Expr::Lit(ExprLit {
                lit: Lit::Int(number),
                ..
            }) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        match self.expression()? {
            Expr::Path(ExprPath {
                qself: None, path, ..
            }) => Some(path),
            _ => None,
        }
    }

    /// The value without the invisible delimiters of `macro_rules`.
    fn expression(&self) -> Option<&Expr> {
        let Value::Equals(value) = &self.value else {
            return None;
        };
        let mut value = value;
        while let Expr::Group(group) = value {
            value = &group.expr;
        }
        Some(value)
    }

    pub(crate) fn ident(&self) -> Option<&Ident> {
        self.path().and_then(Path::get_ident)
    }

    /// Where to point when the value is wrong: at it, or at the word when it has none.
    pub(crate) fn place(&self) -> TokenStream {
        let value = match &self.value {
            Value::Flag => TokenStream::new(),
            Value::Equals(value) => value.to_token_stream(),
            Value::List(list) => TokenTree::from(list.clone()).into(),
            Value::Unreadable(tokens) => tokens.clone(),
        };
        if value.is_empty() {
            self.name.to_token_stream()
        } else {
            value
        }
    }
}

/// Takes the tokens before the next comma.
fn until_comma(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut taken = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        taken.extend([input.parse::<TokenTree>()?]);
    }
    Ok(taken)
}
