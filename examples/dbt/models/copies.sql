-- Documents to drop, with the document to keep, and with the one published first, which may be another
with published as materialized (
    select doc_id, first_external_id, first_source, delay
    from {{ source('nearsim', 'first_publications') }}
    where collection = '{{ var("collection") | replace("'", "''") }}'
        and profile = '{{ var("profile") | replace("'", "''") }}'
)
select copies.doc_id, copies.external_id, copies.source, copies.published_at, copies.cluster_id,
    copies.survivor_id, copies.survivor_external_id, copies.survivor_source,
    published.first_external_id, published.first_source, published.delay
from {{ source('nearsim', 'duplicates') }} as copies
left join published on published.doc_id = copies.doc_id
where copies.collection = '{{ var("collection") | replace("'", "''") }}'
    and copies.profile = '{{ var("profile") | replace("'", "''") }}'
