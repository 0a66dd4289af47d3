fn bill(
    db: &mut SqliteConnection,
    id: &MessageId,
    intent: Option<Intent>,
) -> QueryResult<()> {
    use ::idem_diesel as __idem;
    const __SUBSCRIPTION: __idem::Subscription = __idem::Subscription::new(
        "billing",
        __idem::Retention::literal("7d"),
    );
    let __claim = __idem::__private::consumer::blocking::begin::<
        QueryResult<()>,
        SqliteConnection,
    >(&mut *db, &__SUBSCRIPTION, id, ::core::option::Option::as_ref(&intent), &());
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
    ::core::mem::drop(intent);
    let (db, bound) = consumption.__optional_parts();
    let mut intent = ::core::option::Option::<&_>::cloned(bound);
    let _ = &intent;
    let result: QueryResult<()> = (move || -> QueryResult<()> {
        later(db, id, intent.take())
    })();
    __idem::__private::consumer::blocking::finish::<
        QueryResult<()>,
        SqliteConnection,
    >(consumption, result)
}
