// union Amount<T: Copy> {
//     cents: T,
// }

::core::compile_error! {
    "a union does not say which of its fields is valid: use an enum, or implement `RequestHash` by hand"
}
#[automatically_derived]
impl<T: Copy> ::idem_diesel::RequestHash for Amount<T> {
    fn encode(&self, _: &mut ::idem_diesel::request_hash::Encoder) {}
}
