fn bill(
    db: &mut SqliteConnection,
    mut id: MessageId,
    event: &OrderPlaced,
) -> QueryResult<()> {
    use ::idem_diesel as __idem;
    const __SUBSCRIPTION: __idem::Subscription = __idem::Subscription::new(
            "billing",
            retention::EVENTS,
        )
        .redelivered_for(broker::REDELIVERY);
    const _: () = ::core::assert!(
        __idem::__private::has_edge(< OrderStatus as __idem::StateMachine > ::EDGES,
        OrderStatus::Pending as ::core::primitive::isize, OrderStatus::Billed as
        ::core::primitive::isize,),
        "`OrderStatus` has no transition Pending => Billed: add it to `#[state(to(…))]` of `Pending`"
    );
    const _: () = ::core::assert!(
        __idem::__private::has_edge(< OrderStatus as __idem::StateMachine > ::EDGES,
        OrderStatus::Paid as ::core::primitive::isize, OrderStatus::Billed as
        ::core::primitive::isize,),
        "`OrderStatus` has no transition Paid => Billed: add it to `#[state(to(…))]` of `Paid`"
    );
    let __claim = __idem::__private::consumer::blocking::begin::<
        QueryResult<()>,
        SqliteConnection,
    >(&mut *db, &__SUBSCRIPTION, &id, ::core::option::Option::None, &event);
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
    let moved = __idem::__private::consumer::blocking::transition(
        &mut consumption,
        OrderStatus::Billed,
        &[OrderStatus::Pending, OrderStatus::Paid],
        event.order_id,
    );
    if let ::core::result::Result::Err(error) = moved {
        return __idem::__private::consumer::blocking::refuse::<
            QueryResult<()>,
            SqliteConnection,
        >(consumption, error);
    }
    let db = consumption.connection();
    let result: QueryResult<()> = (move || -> QueryResult<()> {
        if event.amount_cents == 0 {
            return Err(NotFound);
        }
        insert(db, id)
    })();
    __idem::__private::consumer::blocking::finish::<
        QueryResult<()>,
        SqliteConnection,
    >(consumption, result)
}
