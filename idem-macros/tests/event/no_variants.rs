// #[event(aggregate_type = "order")]
// enum Never {}

#[automatically_derived]
#[allow(deprecated)]
impl ::idem_diesel::Event for Never {
    fn event_type(&self) -> &'static ::core::primitive::str {
        match *self {}
    }
    fn aggregate_type(&self) -> &'static ::core::primitive::str {
        "order"
    }
    fn aggregate_id(&self) -> ::std::string::String {
        match *self {}
    }
}
