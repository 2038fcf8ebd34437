-- Documents and copies per source and day of publication, and the documents that another source published first
with document as (
    select source,
        cast(published_at at time zone '{{ var("time_zone") | replace("'", "''") }}' as date) as published_on,
        doc_id in (select doc_id from {{ ref('copies') }}) as is_copy,
        doc_id in (
            select doc_id
            from {{ source('nearsim', 'first_publications') }}
            where collection = '{{ var("collection") | replace("'", "''") }}'
                and profile = '{{ var("profile") | replace("'", "''") }}'
                and first_elsewhere
        ) as is_copy_of_others
    from {{ source('nearsim', 'documents') }}
    where collection = '{{ var("collection") | replace("'", "''") }}'
        and profile = '{{ var("profile") | replace("'", "''") }}'
)
select source, published_on, count(*) as documents, count(*) filter (where is_copy) as copies,
    count(*) filter (where is_copy_of_others) as copies_of_others,
    round(100.0 * count(*) filter (where is_copy) / count(*), 1) as percent_copies
from document
group by source, published_on
