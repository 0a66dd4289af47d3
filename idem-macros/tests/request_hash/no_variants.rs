// enum Never {}

#[automatically_derived]
impl ::idem_diesel::RequestHash for Never {
    fn encode(&self, _: &mut ::idem_diesel::request_hash::Encoder) {
        match *self {}
    }
}
