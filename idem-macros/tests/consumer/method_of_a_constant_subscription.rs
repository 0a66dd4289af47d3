pub(crate) async fn bill<C>(
    &mut self,
    db: &mut C,
    id: &MessageId,
    event: OrderPlaced,
) -> Self::Answer
where
    C: IdempotentConnection,
{
    use crate::once as __idem;
    const __SUBSCRIPTION: __idem::Subscription = BILLING;
    let __claim = __idem::__private::consumer::asynchronous::begin::<
        Self::Answer,
        C,
    >(&mut *db, &__SUBSCRIPTION, id, ::core::option::Option::None, &event);
    let mut consumption = match __claim.await {
        ::core::result::Result::Ok(__idem::inbox::Claimed::Execute(consumption)) => {
            consumption
        }
        ::core::result::Result::Ok(__idem::inbox::Claimed::Duplicate) => {
            return __idem::__private::consumer::duplicate::<Self::Answer>();
        }
        ::core::result::Result::Err(error) => {
            return __idem::__private::consumer::fail::<Self::Answer>(error);
        }
    };
    let mut db = consumption.connection();
    let result: Self::Answer = async move {
        if let ::core::option::Option::Some(result) = ::core::option::Option::None::<
            Self::Answer,
        > {
            return result;
        }
        { self.bill_with(&mut db, id, event).await }
    }
        .await;
    __idem::__private::consumer::asynchronous::finish::<
        Self::Answer,
        C,
    >(consumption, result)
        .await
}
