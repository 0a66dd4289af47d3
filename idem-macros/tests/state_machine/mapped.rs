// #[state_machine(
//     table = schema::orders,
//     column = status,
//     key(tenant_id, order_id),
//     rename_all = "UPPERCASE"
// )]
// enum OrderStatus {
//     #[state(initial, to(Paid))]
//     Pending,
//     #[state(terminal)]
//     Paid,
// }

/// ```mermaid
/// stateDiagram-v2
///     [*] --> Pending
///     Pending --> Paid
///     Paid --> [*]
/// ```
#[automatically_derived]
#[allow(deprecated)]
impl ::idem_diesel::StateMachine for OrderStatus {
    const NAME: &'static str = "OrderStatus";
    const STATES: &'static [Self] = &[Self::Pending, Self::Paid];
    const INITIAL: Self = Self::Pending;
    const EDGES: &'static [(isize, isize)] = &[
        (Self::Pending as isize, Self::Paid as isize),
    ];
    fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Paid => "PAID",
        }
    }
    fn from_name(name: &str) -> ::core::option::Option<Self> {
        match name {
            "PENDING" => ::core::option::Option::Some(Self::Pending),
            "PAID" => ::core::option::Option::Some(Self::Paid),
            _ => ::core::option::Option::None,
        }
    }
    fn successors(self) -> &'static [Self] {
        match self {
            Self::Pending => &[Self::Paid],
            Self::Paid => &[],
        }
    }
}
const _: () = {
    use ::idem_diesel::__private::diesel as __diesel;
    #[automatically_derived]
    impl ::idem_diesel::StateColumn for OrderStatus {
        type Table = schema::orders::table;
        const TABLE: &'static Self::Table = &schema::orders::table;
        const COLUMN: &'static str = <schema::orders::status as __diesel::Column>::NAME;
        const KEY: &'static [&'static str] = &[
            <schema::orders::tenant_id as __diesel::Column>::NAME,
            <schema::orders::order_id as __diesel::Column>::NAME,
        ];
    }
    const _: () = ::idem_diesel::__private::column_holds_state::<
        <schema::orders::status as __diesel::Expression>::SqlType,
        __diesel::sql_types::Text,
    >();
    #[automatically_derived]
    impl __diesel::expression::AsExpression<__diesel::sql_types::Text> for OrderStatus {
        type Expression = __diesel::internal::derives::as_expression::Bound<
            __diesel::sql_types::Text,
            Self,
        >;
        fn as_expression(self) -> Self::Expression {
            <Self::Expression>::new(self)
        }
    }
    #[automatically_derived]
    impl __diesel::expression::AsExpression<__diesel::sql_types::Text> for &OrderStatus {
        type Expression = __diesel::internal::derives::as_expression::Bound<
            __diesel::sql_types::Text,
            Self,
        >;
        fn as_expression(self) -> Self::Expression {
            <Self::Expression>::new(self)
        }
    }
    #[automatically_derived]
    impl __diesel::expression::AsExpression<__diesel::sql_types::Text>
    for &&OrderStatus {
        type Expression = __diesel::internal::derives::as_expression::Bound<
            __diesel::sql_types::Text,
            Self,
        >;
        fn as_expression(self) -> Self::Expression {
            <Self::Expression>::new(self)
        }
    }
    #[automatically_derived]
    impl __diesel::expression::AsExpression<
        __diesel::sql_types::Nullable<__diesel::sql_types::Text>,
    > for OrderStatus {
        type Expression = __diesel::internal::derives::as_expression::Bound<
            __diesel::sql_types::Nullable<__diesel::sql_types::Text>,
            Self,
        >;
        fn as_expression(self) -> Self::Expression {
            <Self::Expression>::new(self)
        }
    }
    #[automatically_derived]
    impl __diesel::expression::AsExpression<
        __diesel::sql_types::Nullable<__diesel::sql_types::Text>,
    > for &OrderStatus {
        type Expression = __diesel::internal::derives::as_expression::Bound<
            __diesel::sql_types::Nullable<__diesel::sql_types::Text>,
            Self,
        >;
        fn as_expression(self) -> Self::Expression {
            <Self::Expression>::new(self)
        }
    }
    #[automatically_derived]
    impl __diesel::expression::AsExpression<
        __diesel::sql_types::Nullable<__diesel::sql_types::Text>,
    > for &&OrderStatus {
        type Expression = __diesel::internal::derives::as_expression::Bound<
            __diesel::sql_types::Nullable<__diesel::sql_types::Text>,
            Self,
        >;
        fn as_expression(self) -> Self::Expression {
            <Self::Expression>::new(self)
        }
    }
    #[automatically_derived]
    impl<__DB> __diesel::serialize::ToSql<__diesel::sql_types::Text, __DB>
    for OrderStatus
    where
        __DB: __diesel::backend::Backend,
        str: __diesel::serialize::ToSql<__diesel::sql_types::Text, __DB>,
    {
        fn to_sql<'__b>(
            &'__b self,
            out: &mut __diesel::serialize::Output<'__b, '_, __DB>,
        ) -> __diesel::serialize::Result {
            let name = ::idem_diesel::StateMachine::name(*self);
            <str as __diesel::serialize::ToSql<
                __diesel::sql_types::Text,
                __DB,
            >>::to_sql(name, out)
        }
    }
    #[automatically_derived]
    impl<
        __DB,
    > __diesel::serialize::ToSql<
        __diesel::sql_types::Nullable<__diesel::sql_types::Text>,
        __DB,
    > for OrderStatus
    where
        __DB: __diesel::backend::Backend,
        Self: __diesel::serialize::ToSql<__diesel::sql_types::Text, __DB>,
    {
        fn to_sql<'__b>(
            &'__b self,
            out: &mut __diesel::serialize::Output<'__b, '_, __DB>,
        ) -> __diesel::serialize::Result {
            <Self as __diesel::serialize::ToSql<
                __diesel::sql_types::Text,
                __DB,
            >>::to_sql(self, out)
        }
    }
    #[automatically_derived]
    impl<__DB> __diesel::deserialize::FromSql<__diesel::sql_types::Text, __DB>
    for OrderStatus
    where
        __DB: __diesel::backend::Backend,
        ::std::string::String: __diesel::deserialize::FromSql<
            __diesel::sql_types::Text,
            __DB,
        >,
    {
        fn from_sql(bytes: __DB::RawValue<'_>) -> __diesel::deserialize::Result<Self> {
            let stored = <::std::string::String as __diesel::deserialize::FromSql<
                __diesel::sql_types::Text,
                __DB,
            >>::from_sql(bytes)?;
            ::core::result::Result::Ok(
                ::idem_diesel::state_machine::from_stored(&stored)?,
            )
        }
    }
    #[automatically_derived]
    impl<__DB, __ST> __diesel::deserialize::Queryable<__ST, __DB> for OrderStatus
    where
        __DB: __diesel::backend::Backend,
        __ST: __diesel::sql_types::SingleValue,
        Self: __diesel::deserialize::FromSql<__ST, __DB>,
    {
        type Row = Self;
        fn build(row: Self) -> __diesel::deserialize::Result<Self> {
            ::core::result::Result::Ok(row)
        }
    }
};
