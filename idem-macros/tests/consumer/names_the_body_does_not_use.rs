fn bill(
    _db: &mut SqliteConnection,
    id: &MessageId,
    message: &OrderPlaced,
) -> QueryResult<()> {
    use ::idem_diesel as __idem;
    const __SUBSCRIPTION: __idem::Subscription = __idem::Subscription::new(
        "billing",
        __idem::Retention::literal("7d"),
    );
    let __claim = __idem::__private::consumer::blocking::begin::<
        QueryResult<()>,
        SqliteConnection,
    >(&mut *_db, &__SUBSCRIPTION, id, ::core::option::Option::None, &message);
    let mut consumption = match __claim {
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
    let OrderPlaced { .. } = { message };
    let _ = consumption.connection();
    let result: QueryResult<()> = (move || -> QueryResult<()> { Ok(()) })();
    __idem::__private::consumer::blocking::finish::<
        QueryResult<()>,
        SqliteConnection,
    >(consumption, result)
}
