// struct OrderStatus<T>(T);

::core::compile_error! {
    "a state machine has no generic parameters: remove them"
}
::core::compile_error! {
    "states are the variants of an enum: write `enum OrderStatus { … }`"
}
#[automatically_derived]
#[allow(deprecated, unreachable_patterns)]
impl<T> ::idem_diesel::StateMachine for OrderStatus<T>
where
    Self: ::core::marker::Copy + ::core::cmp::Eq + ::core::fmt::Debug
        + ::core::marker::Send + ::core::marker::Sync + 'static,
{
    const NAME: &'static str = "OrderStatus";
    const STATES: &'static [Self] = &[];
    const INITIAL: Self = ::core::panic!();
    const EDGES: &'static [(isize, isize)] = &[];
    fn name(self) -> &'static str {
        match self {
            _ => "",
        }
    }
    fn from_name(name: &str) -> ::core::option::Option<Self> {
        match name {
            _ => ::core::option::Option::None,
        }
    }
    fn successors(self) -> &'static [Self] {
        &[]
    }
}
