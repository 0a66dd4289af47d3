// #[event(aggregate_type = "order")]
// enum OrderEvent<'a> {
//     #[event(type = "order.placed")]
//     Placed { #[event(aggregate_id)] order_id: i64, amount_cents: i64 },
//     #[event(type = "order.cancelled")]
//     Cancelled(#[event(aggregate_id)] &'a str, Reason),
//     #[event(type = "order.renamed")]
//     Renamed { #[event(aggregate_id)] r#type: i64 },
// }

#[automatically_derived]
#[allow(deprecated)]
impl<'a> ::idem_diesel::Event for OrderEvent<'a> {
    fn event_type(&self) -> &'static ::core::primitive::str {
        match self {
            Self::Placed { .. } => "order.placed",
            Self::Cancelled { .. } => "order.cancelled",
            Self::Renamed { .. } => "order.renamed",
        }
    }
    fn aggregate_type(&self) -> &'static ::core::primitive::str {
        "order"
    }
    fn aggregate_id(&self) -> ::std::string::String {
        match self {
            Self::Placed { order_id: id, .. } => {
                <i64 as ::std::string::ToString>::to_string(id)
            }
            Self::Cancelled { 0: id, .. } => {
                <&'a str as ::std::string::ToString>::to_string(id)
            }
            Self::Renamed { r#type: id, .. } => {
                <i64 as ::std::string::ToString>::to_string(id)
            }
        }
    }
}
