// #[event(type = "order.placed", crate = my::library)]
// struct OrderPlaced<T: Serialize> {
//     #[event(aggregate_id)]
//     order_id: T,
// }

::core::compile_error! {
    "`OrderPlaced` has no aggregate type, the kind of thing that it happens to: write `#[event(aggregate_type = \"order\")]`"
}
#[automatically_derived]
#[allow(deprecated)]
impl<T: Serialize> my::library::Event for OrderPlaced<T> {
    fn event_type(&self) -> &'static ::core::primitive::str {
        ""
    }
    fn aggregate_type(&self) -> &'static ::core::primitive::str {
        ""
    }
    fn aggregate_id(&self) -> ::std::string::String {
        ::std::string::String::new()
    }
}
