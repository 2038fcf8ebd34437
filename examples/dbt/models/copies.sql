-- Documents to drop, with the document to keep and how much later they were published
select doc_id, external_id, source, published_at, cluster_id, survivor_id, survivor_external_id, survivor_source,
    published_at - survivor_published_at as delay
from {{ source('nearsim', 'duplicates') }}
where collection = '{{ var("collection") }}' and profile = '{{ var("profile") }}'
