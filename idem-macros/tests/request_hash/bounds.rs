// #[request_hash(crate = my::library)]
// struct Node<T, I: Iterator, M, S, const N: usize>
// where
//     S: Clone,
// {
//     next: Option<Box<Node<T, I, M, S, N>>>,
//     values: [T; N],
//     items: Vec<I::Item>,
//     marker: PhantomData<M>,
//     #[request_hash(skip)]
//     skipped: S,
//     #[request_hash(default)]
//     more: Vec<T>,
// }

#[automatically_derived]
impl<T, I: Iterator, M, S, const N: usize> my::library::RequestHash
for Node<T, I, M, S, N>
where
    S: Clone,
    T: my::library::RequestHash,
    Vec<T>: ::core::default::Default + ::core::cmp::PartialEq,
    I::Item: my::library::RequestHash,
{
    fn encode(&self, encoder: &mut my::library::request_hash::Encoder) {
        encoder
            .structure(|encoder| {
                encoder
                    .field_unless_default(
                        "more",
                        &self.more,
                        &<Vec<T> as ::core::default::Default>::default(),
                    );
                encoder.field("next", &self.next);
                encoder.field("items", &self.items);
                encoder.field("marker", &self.marker);
                encoder.field("values", &self.values);
            });
    }
}
