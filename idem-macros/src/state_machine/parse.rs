//! What the user wrote, word by word, unjudged: also what is written twice, unknown or malformed.

use proc_macro2::{Group, Span, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Data, DeriveInput, Fields, Ident, LitStr, Meta, Path, Token, token};

/// The words of `#[state_machine(…)]`, as an error lists them.
pub(super) const MACHINE_WORDS: &str =
    "`table`, `column`, `key`, `sql_type`, `rename_all` and `crate`";

/// The words of `#[state(…)]`, as an error lists them.
pub(super) const STATE_WORDS: &str = "`initial`, `to(…)`, `terminal` and `rename`";

/// The item with its attributes read.
pub(super) struct Given {
    pub(super) item: DeriveInput,
    pub(super) words: MachineWords,
    /// The variants; none when the item is not an enum.
    pub(super) states: Vec<StateWords>,
}

/// `#[state_machine(…)]` on the enum.
#[derive(Default)]
pub(super) struct MachineWords {
    pub(super) table: Word<Path>,
    pub(super) column: Word<Ident>,
    pub(super) key: Word<Vec<Ident>>,
    pub(super) sql_type: Word<Path>,
    pub(super) rename_all: Word<LitStr>,
    pub(super) krate: Word<Path>,
    pub(super) unread: Unread,
}

/// One variant with its `#[state(…)]`.
pub(super) struct StateWords {
    pub(super) ident: Ident,
    pub(super) fields: Fields,
    pub(super) initial: Word<()>,
    pub(super) terminal: Word<()>,
    pub(super) to: Word<Vec<Ident>>,
    pub(super) rename: Word<LitStr>,
    pub(super) unread: Unread,
}

/// Every use of one word, in order.
pub(super) struct Word<T>(Vec<(Ident, T)>);

impl<T> Default for Word<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Word<T> {
    /// What the word says where it stands first.
    pub(super) fn value(&self) -> Option<&T> {
        self.0.first().map(|(_, value)| value)
    }

    /// The word itself where it stands first.
    pub(super) fn ident(&self) -> Option<&Ident> {
        self.0.first().map(|(word, _)| word)
    }

    /// The word itself where it stands again.
    pub(super) fn repeated(&self) -> impl Iterator<Item = &Ident> {
        self.0.iter().skip(1).map(|(word, _)| word)
    }

    fn push(&mut self, word: Ident, value: T) {
        self.0.push((word, value));
    }
}

/// What could not be read.
#[derive(Default)]
pub(super) struct Unread {
    /// Tokens that stand where a word is due and are none.
    pub(super) unknown: Vec<TokenTree>,
    /// Known words in another form than theirs.
    pub(super) malformed: Vec<Malformed>,
}

impl Unread {
    /// Whether all was read. Where it was not, a word that seems to be missing may be the one that was misspelt.
    pub(super) fn is_empty(&self) -> bool {
        self.unknown.is_empty() && self.malformed.is_empty()
    }
}

/// A known word in another form than its own.
pub(super) enum Malformed {
    /// It is written `usage`; `at` is the first token that does not fit, or the word itself when something is missing behind it.
    Form { at: Span, usage: &'static str },
    /// The word was complete before `at`.
    Surplus { at: Span },
}

/// Reads the attributes of the item. It reports nothing: mistakes are kept for the rules.
pub(super) fn parse(item: DeriveInput) -> Given {
    let words = machine_words(&item.attrs);
    let states = match &item.data {
        Data::Enum(data) => data.variants.iter().map(state_words).collect(),
        Data::Struct(_) | Data::Union(_) => Vec::new(),
    };
    Given {
        item,
        words,
        states,
    }
}

fn machine_words(attributes: &[Attribute]) -> MachineWords {
    let mut words = MachineWords::default();
    let mut unread = Unread::default();
    for attribute in attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("state_machine"))
    {
        each_word(
            attribute,
            "#[state_machine(table = orders, column = status)]",
            &mut unread,
            |word, input| {
                let name = word.to_string();
                match name.as_str() {
                    "table" => words.table.push(
                        word,
                        assigned(input, "table = orders", Path::parse_mod_style)?,
                    ),
                    "column" => words
                        .column
                        .push(word, assigned(input, "column = status", Ident::parse)?),
                    "key" => words
                        .key
                        .push(word, listed(input, "key(tenant_id, order_id)")?),
                    "sql_type" => {
                        let usage = "sql_type = schema::sql_types::OrderStatus";
                        words
                            .sql_type
                            .push(word, assigned(input, usage, Path::parse_mod_style)?);
                    }
                    "rename_all" => {
                        words.rename_all.push(
                            word,
                            assigned(
                                input,
                                "rename_all = \"kebab-case\"",
                                <LitStr as Parse>::parse,
                            )?,
                        );
                    }
                    "crate" => words.krate.push(
                        word,
                        assigned(
                            input,
                            "crate = path::to::idem_diesel",
                            Path::parse_mod_style,
                        )?,
                    ),
                    _ => return Err(Problem::Unknown(word)),
                }
                Ok(())
            },
        );
    }
    MachineWords { unread, ..words }
}

fn state_words(variant: &syn::Variant) -> StateWords {
    let mut words = StateWords {
        ident: variant.ident.clone(),
        fields: variant.fields.clone(),
        initial: Word::default(),
        terminal: Word::default(),
        to: Word::default(),
        rename: Word::default(),
        unread: Unread::default(),
    };
    let mut unread = Unread::default();
    for attribute in variant
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("state"))
    {
        each_word(
            attribute,
            "#[state(to(Paid, Cancelled))]",
            &mut unread,
            |word, input| {
                let name = word.to_string();
                match name.as_str() {
                    "initial" => words.initial.push(word, ()),
                    "terminal" => words.terminal.push(word, ()),
                    "to" => words.to.push(word, listed(input, "to(Paid, Cancelled)")?),
                    "rename" => words.rename.push(
                        word,
                        assigned(input, "rename = \"sent\"", <LitStr as Parse>::parse)?,
                    ),
                    _ => return Err(Problem::Unknown(word)),
                }
                Ok(())
            },
        );
    }
    StateWords { unread, ..words }
}

/// Why a word was not read.
enum Problem {
    Unknown(Ident),
    /// In another form than `usage`; without a place the word itself is wrong.
    Form {
        at: Option<Span>,
        usage: &'static str,
    },
}

/// Gives each word of an attribute to `read`. What cannot be read is kept, and reading goes on behind the next comma.
fn each_word(
    attribute: &Attribute,
    usage: &'static str,
    unread: &mut Unread,
    mut read: impl FnMut(Ident, ParseStream<'_>) -> Result<(), Problem>,
) {
    let list = match &attribute.meta {
        Meta::Path(_) => return,
        Meta::List(list) => list,
        Meta::NameValue(pair) => {
            let at = pair.eq_token.span;
            unread.malformed.push(Malformed::Form { at, usage });
            return;
        }
    };
    let words = |input: ParseStream<'_>| {
        while !input.is_empty() {
            one_word(input, unread, &mut read)?;
            if input.peek(Token![,]) {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    };
    if let Err(error) = words.parse2(list.tokens.clone()) {
        unreachable!("each word ends at a comma or at the end: {error}");
    }
}

fn one_word(
    input: ParseStream<'_>,
    unread: &mut Unread,
    read: &mut impl FnMut(Ident, ParseStream<'_>) -> Result<(), Problem>,
) -> syn::Result<()> {
    if !input.peek(Ident::peek_any) {
        unread.unknown.push(input.parse()?);
        return skip_to_comma(input);
    }
    let word = input.call(Ident::parse_any)?;
    match read(word.clone(), input) {
        Ok(()) if input.is_empty() || input.peek(Token![,]) => {}
        Ok(()) => {
            let at = input.cursor().span();
            unread.malformed.push(Malformed::Surplus { at });
        }
        Err(Problem::Unknown(word)) => unread.unknown.push(word.into()),
        Err(Problem::Form { at, usage }) => {
            let at = at.unwrap_or_else(|| word.span());
            unread.malformed.push(Malformed::Form { at, usage });
        }
    }
    skip_to_comma(input)
}

/// `= value` behind a word.
fn assigned<T>(
    input: ParseStream<'_>,
    usage: &'static str,
    value: fn(ParseStream<'_>) -> syn::Result<T>,
) -> Result<T, Problem> {
    if input.parse::<Option<Token![=]>>().ok().flatten().is_none()
        || input.is_empty()
        || input.peek(Token![,])
    {
        return Err(Problem::Form { at: None, usage });
    }
    let at = Some(input.cursor().span());
    value(input).map_err(|_| Problem::Form { at, usage })
}

/// `(first, second)` behind a word.
fn listed(input: ParseStream<'_>, usage: &'static str) -> Result<Vec<Ident>, Problem> {
    if !input.peek(token::Paren) {
        return Err(Problem::Form { at: None, usage });
    }
    // Parsed apart from `input`: what is left unread inside the parentheses must not become an error of the whole attribute.
    let idents = input
        .parse::<Group>()
        .and_then(|group| Punctuated::<Ident, Token![,]>::parse_terminated.parse2(group.stream()));
    match idents {
        Ok(idents) => Ok(idents.into_iter().collect()),
        Err(error) => Err(Problem::Form {
            at: Some(error.span()),
            usage,
        }),
    }
}

fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}
