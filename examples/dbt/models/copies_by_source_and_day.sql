-- Documents and copies per source and day of publication, and the documents that another source published first
select documents.source,
    cast(documents.published_at at time zone '{{ var("time_zone") | replace("'", "''") }}' as date) as published_on,
    count(*) as documents, count(copies.doc_id) as copies, count(published.doc_id) as copies_of_others,
    round(100.0 * count(copies.doc_id) / count(*), 1) as percent_copies
from {{ source('nearsim', 'documents') }} as documents
left join {{ ref('copies') }} as copies on copies.doc_id = documents.doc_id
left join (
    select doc_id
    from {{ source('nearsim', 'first_publications') }}
    where collection = '{{ var("collection") | replace("'", "''") }}'
        and profile = '{{ var("profile") | replace("'", "''") }}'
        and first_elsewhere
) as published on published.doc_id = documents.doc_id
where documents.collection = '{{ var("collection") | replace("'", "''") }}'
    and documents.profile = '{{ var("profile") | replace("'", "''") }}'
group by documents.source, published_on
