// enum OrderStatus {
//     #[state(initial, to(Payed))]
//     Pending,
//     #[state(terminal)]
//     Paid,
// }

::core::compile_error! {
    "no state is called `Payed`: did you mean `Paid`?"
}
#[automatically_derived]
#[allow(deprecated, unreachable_patterns)]
impl ::idem_diesel::StateMachine for OrderStatus {
    const NAME: &'static str = "OrderStatus";
    const STATES: &'static [Self] = &[Self::Pending, Self::Paid];
    const INITIAL: Self = Self::Pending;
    const EDGES: &'static [(isize, isize)] = &[
        (Self::Pending as isize, Self::Pending as isize),
        (Self::Pending as isize, Self::Paid as isize),
        (Self::Paid as isize, Self::Pending as isize),
        (Self::Paid as isize, Self::Paid as isize),
    ];
    fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Paid => "paid",
            _ => "",
        }
    }
    fn from_name(name: &str) -> ::core::option::Option<Self> {
        match name {
            "pending" => ::core::option::Option::Some(Self::Pending),
            "paid" => ::core::option::Option::Some(Self::Paid),
            _ => ::core::option::Option::None,
        }
    }
    fn successors(self) -> &'static [Self] {
        &[]
    }
}
