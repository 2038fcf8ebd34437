-- Documents to keep: all that no cluster has, and one of each cluster
select doc_id, external_id, title, source, url, published_at, cluster_id
from {{ source('nearsim', 'documents') }}
where collection = '{{ var("collection") | replace("'", "''") }}'
    and profile = '{{ var("profile") | replace("'", "''") }}'
    and is_survivor is not false
