// enum Method<'a> {
//     Cash,
//     Card(&'a str),
//     Split(u8, #[request_hash(with = hundredths)] f64),
//     #[request_hash(rename = "Sepa")]
//     Transfer { iban: String, #[request_hash(skip)] bank: String },
// }

#[automatically_derived]
impl<'a> ::idem_diesel::RequestHash for Method<'a> {
    fn encode(&self, encoder: &mut ::idem_diesel::request_hash::Encoder) {
        match self {
            Self::Cash { .. } => {
                encoder
                    .variant(
                        "Cash",
                        |encoder| {
                            encoder.structure(|_| {});
                        },
                    );
            }
            Self::Card { 0: field_0, .. } => {
                encoder
                    .variant(
                        "Card",
                        |encoder| {
                            ::idem_diesel::RequestHash::encode(field_0, encoder);
                        },
                    );
            }
            Self::Split { 0: field_0, 1: field_1, .. } => {
                encoder
                    .variant(
                        "Split",
                        |encoder| {
                            encoder
                                .tuple(|encoder| {
                                    encoder.element(field_0);
                                    encoder
                                        .element_with(|encoder| hundredths(field_1, encoder));
                                });
                        },
                    );
            }
            Self::Transfer { iban: field_iban, .. } => {
                encoder
                    .variant(
                        "Sepa",
                        |encoder| {
                            encoder
                                .structure(|encoder| {
                                    encoder.field("iban", field_iban);
                                });
                        },
                    );
            }
        }
    }
}
