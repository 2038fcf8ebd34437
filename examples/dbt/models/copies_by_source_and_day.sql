-- Documents and copies per source and day of publication
select documents.source, cast(documents.published_at as date) as published_on, count(*) as documents,
    count(copies.doc_id) as copies,
    count(copies.doc_id) filter (where copies.source is distinct from copies.survivor_source) as copies_of_others,
    round(100.0 * count(copies.doc_id) / count(*), 1) as percent_copies
from {{ source('nearsim', 'documents') }} as documents
left join {{ ref('copies') }} as copies on copies.doc_id = documents.doc_id
where documents.collection = '{{ var("collection") }}' and documents.profile = '{{ var("profile") }}'
group by documents.source, published_on
