// struct PayOrder {
//     order_id: i64,
//     amount_cents: i64,
//     r#type: u8,
//     #[request_hash(skip)]
//     trace_id: String,
//     #[request_hash(rename = "lang", default)]
//     language: String,
//     #[request_hash(default = limits::usual)]
//     limit: u32,
//     #[request_hash(with = without_case)]
//     email: String,
//     #[request_hash(default, with = without_case)]
//     alias: String,
// }

#[automatically_derived]
impl ::idem_diesel::RequestHash for PayOrder {
    fn encode(&self, encoder: &mut ::idem_diesel::request_hash::Encoder) {
        encoder
            .structure(|encoder| {
                encoder
                    .field_unless_default(
                        "lang",
                        &self.language,
                        &<String as ::core::default::Default>::default(),
                    );
                encoder.field("type", &self.r#type);
                encoder
                    .field_with_unless_default(
                        "alias",
                        &self.alias,
                        &<String as ::core::default::Default>::default(),
                        |value, encoder| { without_case(value, encoder) },
                    );
                encoder
                    .field_with("email", |encoder| without_case(&self.email, encoder));
                encoder.field_unless_default("limit", &self.limit, &limits::usual());
                encoder.field("order_id", &self.order_id);
                encoder.field("amount_cents", &self.amount_cents);
            });
    }
}
