//! Removals of rows of any size: the database itself leaves the rows that do not fit into a piece.

/// Removes rows of `$table` for which `$of` holds, a condition about `$1`: at most `$2` rows, and none after `$3` bytes. `$key`
/// names each row, and `$bytes` is its size. Returns the bytes of each.
macro_rules! remove_some {
    ($table:literal, $key:literal, $of:literal, $bytes:literal) => {
        concat!(
            "
        delete from ",
            $table,
            "
        where (",
            $key,
            ") in (
            select ",
            $key,
            "
            from (
                select ",
            $key,
            ",
                    sum(bytes) over (order by ",
            $key,
            ") - bytes as bytes_before
                from (
                    select ",
            $key,
            ", ",
            $bytes,
            " as bytes
                    from ",
            $table,
            "
                    where ",
            $of,
            "
                    limit $2
                ) found
            ) counted
            where bytes_before < $3
        )
        returning cast(",
            $bytes,
            " as bigint)
    "
        )
    };
}
pub(super) use remove_some;
