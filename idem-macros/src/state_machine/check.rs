//! The rules of a state machine, each with its reason. Only [`check`] can make a [`Machine`].

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Data, Fields, Ident, LitStr, Path};

use super::names::{RENAME_STYLES, listing, nearest, rename_style, snake_case};
use super::parse::{
    Given, MACHINE_WORDS, MachineWords, Malformed, STATE_WORDS, StateWords, Unread, Word,
};
use crate::ctxt::Ctxt;

/// A machine that every rule has accepted.
pub(super) struct Machine {
    pub(super) krate: TokenStream,
    pub(super) ident: Ident,
    pub(super) initial: Ident,
    pub(super) states: Vec<State>,
    pub(super) mapping: Option<Mapping>,
}

/// One state: its variant, the text that is stored for it, and the variants that may follow.
pub(super) struct State {
    pub(super) ident: Ident,
    pub(super) stored: String,
    pub(super) to: Vec<Ident>,
}

/// The column that holds the state.
pub(super) struct Mapping {
    pub(super) table: Path,
    pub(super) column: Ident,
    pub(super) key: Vec<Ident>,
    /// `None` is text.
    pub(super) sql_type: Option<Path>,
}

/// Applies every rule and gives the machine, or every mistake at once.
pub(super) fn check(ctxt: Ctxt, given: &Given) -> Result<Machine, TokenStream> {
    let words = &given.words;
    rule_known_words(&ctxt, given);
    rule_word_form(&ctxt, given);
    rule_word_once(&ctxt, given);
    rule_table_with_column(&ctxt, words);
    rule_mapping_needs_table(&ctxt, words);
    rule_table_is_module(&ctxt, words);
    rule_key_columns(&ctxt, words);
    rule_rename_all_known(&ctxt, words);
    rule_no_generics(&ctxt, given);

    let mut initial = None;
    if rule_only_enums(&ctxt, given) && rule_at_least_one_state(&ctxt, given) {
        rule_only_unit_variants(&ctxt, given);
        rule_rename_not_empty(&ctxt, given);
        rule_unique_stored_names(&ctxt, given);
        rule_terminal_has_no_to(&ctxt, given);
        rule_no_self_edge(&ctxt, given);
        rule_no_duplicate_edge(&ctxt, given);
        let ends_are_said = rule_end_says_terminal(&ctxt, given);
        let targets_are_known = rule_known_targets(&ctxt, given);
        let all_is_read = given.states.iter().all(|state| state.unread.is_empty());
        initial = rule_one_initial(&ctxt, given);
        // Where an edge is missing, what lies behind it is unreachable only because of that.
        if let Some(initial) = initial
            && ends_are_said
            && targets_are_known
            && all_is_read
        {
            rule_reachable(&ctxt, given, initial);
        }
    }

    ctxt.finish()?;
    let Some(initial) = initial else {
        unreachable!("a machine without an initial state was reported");
    };
    let state = |state: &StateWords| State {
        ident: state.ident.clone(),
        stored: stored(words, state),
        to: targets(state).to_vec(),
    };
    Ok(Machine {
        krate: crate::paths::library(words.krate.value()),
        ident: given.item.ident.clone(),
        initial: initial.clone(),
        states: given.states.iter().map(state).collect(),
        mapping: mapping(words),
    })
}

/// The column, when it was named.
pub(super) fn mapping(words: &MachineWords) -> Option<Mapping> {
    let mut table = words.table.value()?.clone();
    let column = words.column.value()?.clone();
    if names_table_itself(&table).is_some() {
        table.segments.pop();
        table.segments.pop_punct();
    }
    // Without `key` the column is `id`; when there is none, the table is where to look.
    let id = || {
        table
            .segments
            .last()
            .map(|table| Ident::new("id", table.ident.span()))
    };
    let key = words
        .key
        .value()
        .cloned()
        .unwrap_or_else(|| id().into_iter().collect());
    Some(Mapping {
        key,
        sql_type: words.sql_type.value().cloned(),
        table,
        column,
    })
}

/// The text that is stored for a state.
pub(super) fn stored(words: &MachineWords, state: &StateWords) -> String {
    if let Some(rename) = state.rename.value() {
        return rename.value();
    }
    let style = words
        .rename_all
        .value()
        .map(LitStr::value)
        .and_then(|style| rename_style(&style));
    style.unwrap_or(snake_case)(&state.ident.unraw().to_string())
}

/// The declared targets of a state.
fn targets(state: &StateWords) -> &[Ident] {
    state.to.value().map_or(&[], Vec::as_slice)
}

/// Reason: a misspelt word would otherwise be ignored, and with it what it asks for.
fn rule_known_words(ctxt: &Ctxt, given: &Given) {
    let report = |unread: &Unread, known: &str| {
        for token in &unread.unknown {
            let is_state = given
                .states
                .iter()
                .any(|state| state.ident == token.to_string());
            if is_state {
                ctxt.error(
                    token,
                    format_args!("a state that follows is written `to({token})`"),
                );
            } else {
                ctxt.error(
                    token,
                    format_args!("`{token}` is not known here: the words are {known}"),
                );
            }
        }
    };
    report(&given.words.unread, MACHINE_WORDS);
    for state in &given.states {
        report(&state.unread, STATE_WORDS);
    }
}

/// Reason: each word has one form, so that machines read alike.
fn rule_word_form(ctxt: &Ctxt, given: &Given) {
    let states = given.states.iter().map(|state| &state.unread);
    for malformed in states
        .chain([&given.words.unread])
        .flat_map(|unread| &unread.malformed)
    {
        ctxt.push(match malformed {
            Malformed::Form { at, usage } => syn::Error::new(*at, format_args!("write `{usage}`")),
            Malformed::Surplus { at } => syn::Error::new(
                *at,
                "nothing but a comma can follow the word before: remove this",
            ),
        });
    }
}

/// Reason: of two values one would be ignored.
fn rule_word_once(ctxt: &Ctxt, given: &Given) {
    fn report<T>(ctxt: &Ctxt, word: &Word<T>) {
        for repeated in word.repeated() {
            ctxt.error(
                repeated,
                format_args!("`{repeated}` is given already: keep one"),
            );
        }
    }
    let words = &given.words;
    report(ctxt, &words.table);
    report(ctxt, &words.column);
    report(ctxt, &words.key);
    report(ctxt, &words.sql_type);
    report(ctxt, &words.rename_all);
    report(ctxt, &words.krate);
    for state in &given.states {
        report(ctxt, &state.initial);
        report(ctxt, &state.terminal);
        report(ctxt, &state.to);
        report(ctxt, &state.rename);
    }
}

/// Reason: a guarded update needs both.
fn rule_table_with_column(ctxt: &Ctxt, words: &MachineWords) {
    match (words.table.ident(), words.column.ident()) {
        (Some(table), None) if words.unread.is_empty() => {
            ctxt.error(
                table,
                "`table` comes with the column that holds the state: add `column = status`",
            );
        }
        (None, Some(column)) if words.unread.is_empty() => {
            ctxt.error(
                column,
                "`column` comes with its table: add `table = orders`",
            );
        }
        _ => {}
    }
}

/// Reason: both describe the row of an entity, which a machine without a column does not have.
fn rule_mapping_needs_table(ctxt: &Ctxt, words: &MachineWords) {
    if words.table.ident().or(words.column.ident()).is_some() || !words.unread.is_empty() {
        return;
    }
    for word in [words.key.ident(), words.sql_type.ident()]
        .into_iter()
        .flatten()
    {
        ctxt.error(
            word,
            format_args!(
                "`{word}` describes a stored entity: add `table = orders, column = status`"
            ),
        );
    }
}

/// Reason: the columns are looked up beside the table, in the module that Diesel's `table!` made.
fn rule_table_is_module(ctxt: &Ctxt, words: &MachineWords) {
    if let Some((module, table)) = words.table.value().and_then(names_table_itself) {
        ctxt.error(
            table,
            format_args!("the columns stand beside the table: write its module, `{module}`, alone"),
        );
    }
}

/// The module and the table of a path that ends in `orders::table`.
fn names_table_itself(path: &Path) -> Option<(&Ident, &Ident)> {
    let mut segments = path.segments.iter().rev().map(|segment| &segment.ident);
    let table = segments.next().filter(|ident| *ident == "table")?;
    Some((segments.next()?, table))
}

/// Reason: the key finds one row, whatever its state is.
fn rule_key_columns(ctxt: &Ctxt, words: &MachineWords) {
    let Some(key) = words.key.value() else { return };
    if key.is_empty() {
        ctxt.error(words.key.ident(), "`key` names no column: write `key(tenant_id, order_id)`, or remove it when the key is `id`");
    }
    for (index, column) in key.iter().enumerate() {
        if key.iter().take(index).any(|earlier| earlier == column) {
            ctxt.error(
                column,
                format_args!("`{column}` is in the key already: remove it"),
            );
        } else if words.column.value() == Some(column) {
            ctxt.error(
                column,
                format_args!("`{column}` holds the state, which changes: remove it from the key"),
            );
        }
    }
}

/// Reason: a style that is not known would silently store another text.
fn rule_rename_all_known(ctxt: &Ctxt, words: &MachineWords) {
    let Some(style) = words.rename_all.value() else {
        return;
    };
    if rename_style(&style.value()).is_none() {
        let known = listing(RENAME_STYLES.map(|(name, _)| name));
        ctxt.error(
            style,
            format_args!("`{}` is not known: the styles are {known}", style.value()),
        );
    }
}

/// Reason: a parameter would make many machines of one, with one column between them.
fn rule_no_generics(ctxt: &Ctxt, given: &Given) {
    let generics = &given.item.generics;
    if !generics.params.is_empty() {
        ctxt.error(
            generics,
            "a state machine has no generic parameters: remove them",
        );
    } else if let Some(clause) = &generics.where_clause {
        ctxt.error(clause, "a state machine has no conditions: remove them");
    }
}

/// Reason: the states are counted, so they are the variants of an enum.
fn rule_only_enums(ctxt: &Ctxt, given: &Given) -> bool {
    let message = format!(
        "states are the variants of an enum: write `enum {} {{ … }}`",
        given.item.ident
    );
    match &given.item.data {
        Data::Enum(_) => return true,
        Data::Struct(data) => ctxt.error(data.struct_token, message),
        Data::Union(data) => ctxt.error(data.union_token, message),
    }
    false
}

/// Reason: an entity is always in some state.
fn rule_at_least_one_state(ctxt: &Ctxt, given: &Given) -> bool {
    if given.states.is_empty() {
        ctxt.error(
            &given.item.ident,
            "a state machine has at least one state: write `#[state(initial, to(…))] Pending`",
        );
    }
    !given.states.is_empty()
}

/// Reason: one text is stored for a state, and data would be lost with it.
fn rule_only_unit_variants(ctxt: &Ctxt, given: &Given) {
    for state in &given.states {
        if !matches!(state.fields, Fields::Unit) {
            ctxt.error(
                &state.fields,
                format_args!(
                    "a state carries no data: write `{}` and keep the data in columns of its own",
                    state.ident
                ),
            );
        }
    }
}

/// Reason: an empty text cannot be told from a column that nobody filled.
fn rule_rename_not_empty(ctxt: &Ctxt, given: &Given) {
    for rename in given.states.iter().filter_map(|state| state.rename.value()) {
        if rename.value().is_empty() {
            ctxt.error(
                rename,
                "a stored name is not empty: write the text that the column holds",
            );
        }
    }
}

/// Reason: two states under one stored name are read back as one.
fn rule_unique_stored_names(ctxt: &Ctxt, given: &Given) {
    let name = |state| stored(&given.words, state);
    for (index, state) in given.states.iter().enumerate() {
        let mine = name(state);
        let earlier = given
            .states
            .iter()
            .take(index)
            .find(|earlier| name(earlier) == mine);
        // Equal variants are the compiler's to report, and an empty name has been.
        if let Some(earlier) =
            earlier.filter(|earlier| earlier.ident != state.ident && !mine.is_empty())
        {
            let at = state
                .rename
                .value()
                .map_or_else(|| state.ident.to_token_stream(), ToTokens::to_token_stream);
            ctxt.error(
                at,
                format_args!("`{}` is stored as \"{mine}\" already: give one of them another name with `rename = \"…\"`", earlier.ident),
            );
        }
    }
}

/// Reason: an end is a decision, so it is written down; a forgotten `to` is a bug.
fn rule_end_says_terminal(ctxt: &Ctxt, given: &Given) -> bool {
    let mut ends_are_said = true;
    for state in given
        .states
        .iter()
        .filter(|state| state.terminal.ident().is_none() && targets(state).is_empty())
    {
        let ident = &state.ident;
        if let Some(to) = state.to.ident() {
            ends_are_said = false;
            ctxt.error(to, format_args!("`to` names no state: write what follows `{ident}`, or `terminal` when it is an end"));
        } else if state.unread.is_empty() {
            ends_are_said = false;
            ctxt.error(
                ident,
                format_args!("nothing says what follows `{ident}`: write `#[state(to(…))]`, or `#[state(terminal)]` when it is an end"),
            );
        }
    }
    ends_are_said
}

/// Reason: one of the two is wrong, and only the author knows which.
fn rule_terminal_has_no_to(ctxt: &Ctxt, given: &Given) {
    for state in &given.states {
        if let (Some(terminal), Some(_)) = (state.terminal.ident(), state.to.ident()) {
            ctxt.error(
                terminal,
                format_args!(
                    "`{}` is no end, because `to(…)` names what follows: remove one of the two",
                    state.ident
                ),
            );
        }
    }
}

/// Reason: the second payment of an order must change nothing, so no state may follow itself.
fn rule_no_self_edge(ctxt: &Ctxt, given: &Given) {
    for (state, target) in edges(given).filter(|(state, target)| state.ident == **target) {
        ctxt.error(
            target,
            format_args!(
                "`{}` cannot follow itself, or the same command would take effect twice: remove it",
                state.ident
            ),
        );
    }
}

/// Reason: a name that stands twice usually hides the one that was meant.
fn rule_no_duplicate_edge(ctxt: &Ctxt, given: &Given) {
    for state in &given.states {
        for (index, target) in targets(state).iter().enumerate() {
            let earlier = targets(state)
                .iter()
                .take(index)
                .any(|earlier| earlier == target);
            // A self-edge is reported as such.
            if earlier && *target != state.ident {
                ctxt.error(
                    target,
                    format_args!("`{target}` follows `{}` already: remove it", state.ident),
                );
            }
        }
    }
}

/// Reason: an edge into nowhere can never be taken.
fn rule_known_targets(ctxt: &Ctxt, given: &Given) -> bool {
    let mut all_are_known = true;
    for (_, target) in edges(given).filter(|(_, target)| find(given, target).is_none()) {
        all_are_known = false;
        let states = given.states.iter().map(|state| &state.ident);
        let hint = match nearest(target, states.clone()) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("the states are {}", listing(states)),
        };
        ctxt.error(
            target,
            format_args!("no state is called `{target}`: {hint}"),
        );
    }
    all_are_known
}

/// Reason: an entity starts in exactly one state.
fn rule_one_initial<'a>(ctxt: &Ctxt, given: &'a Given) -> Option<&'a Ident> {
    let mut initial = given
        .states
        .iter()
        .filter_map(|state| Some((&state.ident, state.initial.ident()?)));
    let Some((first, _)) = initial.next() else {
        if given.states.iter().all(|state| state.unread.is_empty()) {
            ctxt.error(
                &given.item.ident,
                "no state is initial: add `initial` to the one in which an entity starts",
            );
        }
        return None;
    };
    for (_, word) in initial {
        ctxt.error(
            word,
            format_args!(
                "an entity starts in one state, and `{first}` is initial already: remove `initial`"
            ),
        );
    }
    Some(first)
}

/// Reason: a state that no path leads to is a forgotten edge or a dead state.
fn rule_reachable(ctxt: &Ctxt, given: &Given, initial: &Ident) {
    let mut reached = Vec::new();
    reach(given, initial, &mut reached);
    let lost = |reached: &[&Ident]| {
        let unreached = || {
            given
                .states
                .iter()
                .filter(|state| !reached.contains(&&state.ident))
        };
        // One error for each part of the graph, at the state that leads into it; in a circle every state does, and the first is named.
        let entry =
            unreached().find(|state| unreached().all(|from| !targets(from).contains(&state.ident)));
        entry.or(unreached().next())
    };
    while let Some(state) = lost(&reached) {
        let ident = &state.ident;
        ctxt.error(
            ident,
            format_args!("no path leads from `{initial}` to `{ident}`: add `{ident}` to the `to(…)` of a state before it, or remove it"),
        );
        reach(given, ident, &mut reached);
    }
}

/// Adds `start` and all that follows it.
fn reach<'a>(given: &'a Given, start: &'a Ident, reached: &mut Vec<&'a Ident>) {
    let mut open = vec![start];
    while let Some(ident) = open.pop() {
        if !reached.contains(&ident) {
            reached.push(ident);
            open.extend(find(given, ident).map_or(&[][..], targets));
        }
    }
}

fn find<'a>(given: &'a Given, ident: &Ident) -> Option<&'a StateWords> {
    given.states.iter().find(|state| state.ident == *ident)
}

/// Every state with each of its targets.
fn edges(given: &Given) -> impl Iterator<Item = (&StateWords, &Ident)> {
    given
        .states
        .iter()
        .flat_map(|state| targets(state).iter().map(move |target| (state, target)))
}
