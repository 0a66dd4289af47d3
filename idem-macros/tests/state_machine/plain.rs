// enum OrderStatus {
//     #[state(initial, to(Paid, Cancelled))]
//     Pending,
//     #[state(to(Shipped))]
//     Paid,
//     #[state(terminal)]
//     Cancelled,
//     #[state(terminal, rename = "sent")]
//     Shipped,
// }

/// ```mermaid
/// stateDiagram-v2
///     [*] --> Pending
///     Pending --> Paid
///     Pending --> Cancelled
///     Paid --> Shipped
///     Cancelled --> [*]
///     Shipped --> [*]
/// ```
#[automatically_derived]
#[allow(deprecated)]
impl ::idem_diesel::StateMachine for OrderStatus {
    const NAME: &'static str = "OrderStatus";
    const STATES: &'static [Self] = &[
        Self::Pending,
        Self::Paid,
        Self::Cancelled,
        Self::Shipped,
    ];
    const INITIAL: Self = Self::Pending;
    const EDGES: &'static [(isize, isize)] = &[
        (Self::Pending as isize, Self::Paid as isize),
        (Self::Pending as isize, Self::Cancelled as isize),
        (Self::Paid as isize, Self::Shipped as isize),
    ];
    fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Paid => "paid",
            Self::Cancelled => "cancelled",
            Self::Shipped => "sent",
        }
    }
    fn from_name(name: &str) -> ::core::option::Option<Self> {
        match name {
            "pending" => ::core::option::Option::Some(Self::Pending),
            "paid" => ::core::option::Option::Some(Self::Paid),
            "cancelled" => ::core::option::Option::Some(Self::Cancelled),
            "sent" => ::core::option::Option::Some(Self::Shipped),
            _ => ::core::option::Option::None,
        }
    }
    fn successors(self) -> &'static [Self] {
        match self {
            Self::Pending => &[Self::Paid, Self::Cancelled],
            Self::Paid => &[Self::Shipped],
            Self::Cancelled | Self::Shipped => &[],
        }
    }
}
