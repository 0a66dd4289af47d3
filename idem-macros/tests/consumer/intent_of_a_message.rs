async fn bill(
    db: &mut AsyncPgConnection,
    id: &MessageId,
    intent: &Intent,
) -> QueryResult<()> {
    use ::idem_diesel as __idem;
    const __SUBSCRIPTION: __idem::Subscription = __idem::Subscription::new(
        "billing",
        __idem::Retention::literal("7d"),
    );
    let __claim = __idem::__private::consumer::asynchronous::begin::<
        QueryResult<()>,
        AsyncPgConnection,
    >(&mut *db, &__SUBSCRIPTION, id, ::core::option::Option::Some(intent), &());
    let mut consumption = match __claim.await {
        ::core::result::Result::Ok(__idem::inbox::Claimed::Execute(consumption)) => {
            consumption
        }
        ::core::result::Result::Ok(__idem::inbox::Claimed::Duplicate) => {
            return __idem::__private::consumer::duplicate::<QueryResult<()>>();
        }
        ::core::result::Result::Err(error) => {
            return __idem::__private::consumer::fail::<QueryResult<()>>(error);
        }
    };
    let (db, intent) = consumption.__parts();
    let _ = &intent;
    let result: QueryResult<()> = async move {
        if let ::core::option::Option::Some(result) = ::core::option::Option::None::<
            QueryResult<()>,
        > {
            return result;
        }
        { charge(db, id, intent.downstream("psp.charge")).await }
    }
        .await;
    __idem::__private::consumer::asynchronous::finish::<
        QueryResult<()>,
        AsyncPgConnection,
    >(consumption, result)
        .await
}
