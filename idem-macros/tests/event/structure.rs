// #[event(type = "order.placed", aggregate_type = "order")]
// struct OrderPlaced {
//     #[event(aggregate_id)]
//     order_id: i64,
//     amount_cents: i64,
// }

#[automatically_derived]
#[allow(deprecated)]
impl ::idem_diesel::Event for OrderPlaced {
    fn event_type(&self) -> &'static ::core::primitive::str {
        "order.placed"
    }
    fn aggregate_type(&self) -> &'static ::core::primitive::str {
        "order"
    }
    fn aggregate_id(&self) -> ::std::string::String {
        <i64 as ::std::string::ToString>::to_string(&self.order_id)
    }
}
