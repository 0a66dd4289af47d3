async fn pay(
    &mut self,
    db: &mut AsyncPgConnection,
    intent: Intent,
    mut cmd: PayOrder,
    line: Line,
    clock: &Clock,
) -> QueryResult<()> {
    use ::idem_diesel as __idem;
    const __OPERATION: __idem::Operation = __idem::Operation::new(
        "orders.pay",
        __idem::Retention::literal("48h"),
    );
    const _: () = ::core::assert!(
        __idem::__private::has_edge(< OrderStatus as __idem::StateMachine > ::EDGES,
        OrderStatus::Pending as ::core::primitive::isize, OrderStatus::Paid as
        ::core::primitive::isize,),
        "`OrderStatus` has no transition Pending => Paid: add it to `#[state(to(…))]` of `Pending`"
    );
    let mut retries = __idem::__private::Retries::new(3);
    let _ = &mut cmd;
    let intent = intent;
    let cmd = cmd;
    let line = line;
    loop {
        let __claim = __idem::__private::asynchronous::begin::<
            QueryResult<()>,
            AsyncPgConnection,
        >(
            &mut *db,
            ::core::option::Option::Some(&intent),
            &__OPERATION,
            &__idem::__private::Fields(&[("cmd", &cmd), ("line", &line)]),
        );
        let mut execution = match __claim.await {
            ::core::result::Result::Ok(__idem::Claimed::Execute(execution)) => execution,
            ::core::result::Result::Ok(__idem::Claimed::Replay(stored)) => {
                return __idem::__private::replay::<QueryResult<()>>(stored);
            }
            ::core::result::Result::Err(error) => {
                return __idem::__private::fail::<QueryResult<()>>(error);
            }
        };
        let mut cmd = ::core::clone::Clone::clone(&cmd);
        let line = ::core::clone::Clone::clone(&line);
        let Line { id, .. } = { line };
        let moved = __idem::__private::asynchronous::transition(
                &mut execution,
                OrderStatus::Paid,
                &[OrderStatus::Pending],
                cmd.order_id,
            )
            .await;
        if let ::core::result::Result::Err(error) = moved {
            match __idem::__private::asynchronous::refuse_or_retry::<
                QueryResult<()>,
                AsyncPgConnection,
            >(execution, error, &mut retries)
                .await
            {
                ::core::option::Option::Some(result) => return result,
                ::core::option::Option::None => continue,
            }
        }
        let (db, bound) = execution.__parts();
        let intent = ::core::clone::Clone::clone(bound);
        let _ = &intent;
        let result: QueryResult<()> = async {
            if let ::core::option::Option::Some(result) = ::core::option::Option::None::<
                QueryResult<()>,
            > {
                return result;
            }
            { self.serve(db, intent, cmd, id, clock).await }
        }
            .await;
        if let ::core::option::Option::Some(result) = __idem::__private::asynchronous::finish_or_retry::<
            QueryResult<()>,
            AsyncPgConnection,
        >(execution, result, &mut retries)
            .await
        {
            return result;
        }
    }
}
