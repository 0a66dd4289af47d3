fn cancel(
    db: &mut SqliteConnection,
    intent: Option<Intent>,
    request: CancelOrder,
) -> QueryResult<()> {
    use crate::once as __idem;
    const __OPERATION: __idem::Operation = __idem::Operation::new(
        "orders.cancel",
        __idem::Retention::literal("30d"),
    );
    const _: () = ::core::assert!(
        __idem::__private::has_edge(< shop::OrderStatus as __idem::StateMachine >
        ::EDGES, shop::OrderStatus::Pending as ::core::primitive::isize,
        shop::OrderStatus::Cancelled as ::core::primitive::isize,),
        "`OrderStatus` has no transition Pending => Cancelled: add it to `#[state(to(…))]` of `Pending`"
    );
    const _: () = ::core::assert!(
        __idem::__private::has_edge(< shop::OrderStatus as __idem::StateMachine >
        ::EDGES, shop::OrderStatus::Paid as ::core::primitive::isize,
        shop::OrderStatus::Cancelled as ::core::primitive::isize,),
        "`OrderStatus` has no transition Paid => Cancelled: add it to `#[state(to(…))]` of `Paid`"
    );
    let __claim = __idem::__private::blocking::begin::<
        QueryResult<()>,
        SqliteConnection,
    >(&mut *db, ::core::option::Option::as_ref(&intent), &__OPERATION, &request);
    let mut execution = match __claim {
        ::core::result::Result::Ok(__idem::Claimed::Execute(execution)) => execution,
        ::core::result::Result::Ok(__idem::Claimed::Replay(stored)) => {
            return __idem::__private::replay::<QueryResult<()>>(stored);
        }
        ::core::result::Result::Err(error) => {
            return __idem::__private::fail::<QueryResult<()>>(error);
        }
    };
    let CancelOrder { order_id, .. } = { request };
    let moved = __idem::__private::blocking::transition(
        &mut execution,
        shop::OrderStatus::Cancelled,
        &[shop::OrderStatus::Pending, shop::OrderStatus::Paid],
        order_id,
    );
    if let ::core::result::Result::Err(error) = moved {
        return __idem::__private::blocking::refuse::<
            QueryResult<()>,
            SqliteConnection,
        >(execution, error);
    }
    ::core::mem::drop(intent);
    let (db, bound) = execution.__optional_parts();
    let intent = ::core::option::Option::<&_>::cloned(bound);
    let _ = &intent;
    let result: QueryResult<()> = (move || -> QueryResult<()> {
        free(db, order_id, intent)
    })();
    __idem::__private::blocking::finish::<
        QueryResult<()>,
        SqliteConnection,
    >(execution, result)
}
