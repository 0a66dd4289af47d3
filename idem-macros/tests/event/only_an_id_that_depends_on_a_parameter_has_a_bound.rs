// #[event(aggregate_type = "order")]
// enum OrderEvent<'a, K: Key, T, const N: usize>
// where
//     T: Serialize,
// {
//     #[event(type = "order.placed")]
//     Placed(#[event(aggregate_id)] K::Id, T),
//     #[event(type = "order.cancelled")]
//     Cancelled(#[event(aggregate_id)] K::Id, [T; N]),
//     #[event(type = "order.noted")]
//     Noted(#[event(aggregate_id)] &'a str, T),
// }

#[automatically_derived]
#[allow(deprecated)]
impl<'a, K: Key, T, const N: usize> ::idem_diesel::Event for OrderEvent<'a, K, T, N>
where
    T: Serialize,
    K::Id: ::core::fmt::Display,
{
    fn event_type(&self) -> &'static ::core::primitive::str {
        match self {
            Self::Placed { .. } => "order.placed",
            Self::Cancelled { .. } => "order.cancelled",
            Self::Noted { .. } => "order.noted",
        }
    }
    fn aggregate_type(&self) -> &'static ::core::primitive::str {
        "order"
    }
    fn aggregate_id(&self) -> ::std::string::String {
        match self {
            Self::Placed { 0: id, .. } => {
                <K::Id as ::std::string::ToString>::to_string(id)
            }
            Self::Cancelled { 0: id, .. } => {
                <K::Id as ::std::string::ToString>::to_string(id)
            }
            Self::Noted { 0: id, .. } => {
                <&'a str as ::std::string::ToString>::to_string(id)
            }
        }
    }
}
