// struct OrderId(i64, #[request_hash(skip)] PhantomData<Order>);

#[automatically_derived]
impl ::idem_diesel::RequestHash for OrderId {
    fn encode(&self, encoder: &mut ::idem_diesel::request_hash::Encoder) {
        ::idem_diesel::RequestHash::encode(&self.0, encoder);
    }
}
