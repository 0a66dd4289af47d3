// #[event(type = "order.placed", aggregate_type = "order", crate = my::library)]
// struct OrderPlaced(String, #[event(aggregate_id)] OrderId);

#[automatically_derived]
#[allow(deprecated)]
impl my::library::Event for OrderPlaced {
    fn event_type(&self) -> &'static ::core::primitive::str {
        "order.placed"
    }
    fn aggregate_type(&self) -> &'static ::core::primitive::str {
        "order"
    }
    fn aggregate_id(&self) -> ::std::string::String {
        <OrderId as ::std::string::ToString>::to_string(&self.1)
    }
}
